"""Metrics of handlers. They are sent in groups, when the worker is idle or at most ten times a second."""

from __future__ import annotations

import copy
import math
import threading
import time
from typing import Any

from torchserve_ts.frames import METRIC, map_frame
from torchserve_ts.link import Link

_MOST_VALUES = 256
"""Values of one metric in a frame."""

_FLUSH_INTERVAL = 0.1
"""Seconds between two flushes while requests run."""

_SIZE_UNITS = ("B", "kB", "MB", "GB")


class MetricSender:
    """Collects values. Any thread may add; ``flush`` sends what waits."""

    def __init__(self, link: Link, wanted: dict[str, Any] | None) -> None:
        self._link = link
        self._all = wanted is None or bool(wanted["others"])
        self._declared = {each["name"] for each in (wanted or {}).get("declared", [])}
        self._series: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._flushed_at = float("-inf")
        self._lock = threading.Lock()

    def wants(self, name: str) -> bool:
        """Tell whether the server takes the metric."""
        return self._all or name in self._declared

    def add(self, name: str, kind: str, unit: str, dimensions: dict[str, str], value: float, request_ids: str) -> None:
        """Add one value."""
        key = (name, kind, unit, tuple(dimensions.items()))
        with self._lock:
            series = self._series.get(key)
            if series is None:
                series = self._series[key] = {
                    "name": name,
                    "kind": kind,
                    "unit": unit,
                    "dimensions": dimensions,
                    "values": [],
                    "requestIds": [],
                }
            series["values"].append(value)
            series["requestIds"].append(request_ids)
            full = len(series["values"]) >= _MOST_VALUES
            if full:
                del self._series[key]
        if full:
            self._link.send(map_frame(METRIC, series))

    def flush(self, at_once: bool = True) -> None:
        """Send the values that wait; without ``at_once`` only if the last flush was some time ago."""
        if not self._series:
            return
        with self._lock:
            now = time.monotonic()
            if not at_once and now - self._flushed_at < _FLUSH_INTERVAL:
                return
            self._flushed_at = now
            waiting = list(self._series.values())
            self._series.clear()
        for series in waiting:
            self._link.send(map_frame(METRIC, series))


class Metrics:
    """``context.metrics``, as TorchServe's handlers use it.

    The server adds the dimensions ``ModelName`` and ``Level``. A value counts for all requests of the batch, or
    with ``idx`` for one. ``dimensions`` is a dict, or a list of objects with ``name`` and ``value``.
    """

    def __init__(self, sender: MetricSender, model_name: str, link: Link) -> None:
        self._sender = sender
        self._model_name = model_name
        self._link = link
        self._request_ids: dict[int, str] = {}

    def for_requests(self, request_ids: dict[int, str]) -> Metrics:
        """Return the metrics of a call."""
        other = copy.copy(self)
        other._request_ids = request_ids
        return other

    def add_counter(self, metric_name: str, value: float, idx: int | None = None, dimensions: Any = None) -> None:
        """Add to a counter."""
        self.add_metric(metric_name, value, "count", idx, dimensions, "counter")

    def add_time(
        self,
        metric_name: str,
        value: float,
        idx: int | None = None,
        unit: str = "ms",
        dimensions: Any = None,
        metric_type: Any = "gauge",
    ) -> None:
        """Report a duration in ``ms`` or ``s``."""
        if unit not in ("ms", "s"):
            raise ValueError(f"the unit of a time is ms or s, not {unit}")
        self.add_metric(metric_name, value, unit, idx, dimensions, metric_type)

    def add_size(
        self,
        metric_name: str,
        value: float,
        idx: int | None = None,
        unit: str = "MB",
        dimensions: Any = None,
        metric_type: Any = "gauge",
    ) -> None:
        """Report a size in ``B``, ``kB``, ``MB`` or ``GB``."""
        if unit not in _SIZE_UNITS:
            raise ValueError(f"the unit of a size is B, kB, MB or GB, not {unit}")
        self.add_metric(metric_name, value, unit, idx, dimensions, metric_type)

    def add_percent(
        self,
        metric_name: str,
        value: float,
        idx: int | None = None,
        dimensions: Any = None,
        metric_type: Any = "gauge",
    ) -> None:
        """Report a percentage."""
        self.add_metric(metric_name, value, "percent", idx, dimensions, metric_type)

    def add_error(self, metric_name: str, value: float, dimensions: Any = None) -> None:
        """Count errors. The dimension ``Level`` is ``Error``."""
        self._add(metric_name, value, "", None, {**_pairs(dimensions), "Level": "Error"}, "counter")

    def add_metric(
        self,
        metric_name: str,
        value: float,
        unit: str,
        idx: int | None = None,
        dimensions: Any = None,
        metric_type: Any = "counter",
    ) -> None:
        """Report any metric. ``metric_type`` is ``counter``, ``gauge`` or ``histogram``."""
        own = {**_pairs(dimensions), "ModelName": self._model_name, "Level": "Model"}
        self._add(metric_name, value, unit, idx, own, metric_type)

    def _add(self, name: str, value: float, unit: str, idx: int | None, dimensions: dict[str, str], kind: Any) -> None:
        text = str(getattr(kind, "value", kind)).lower()
        number = float(value)
        if text not in ("counter", "gauge", "histogram"):
            raise ValueError(f"the type of a metric is counter, gauge or histogram, not {kind}")
        if not math.isfinite(number) or (text == "counter" and number < 0):
            self._link.log("warn", f"The metric {name} cannot have the value {value}")
            return
        if not self._sender.wants(name):
            return
        ids = ",".join(self._request_ids.values()) if idx is None else self._request_ids.get(idx, "")
        self._sender.add(name, text, unit, dimensions, number, ids)


def _pairs(dimensions: Any) -> dict[str, str]:
    if dimensions is None:
        return {}
    if isinstance(dimensions, dict):
        return {str(name): str(value) for name, value in dimensions.items()}
    return {str(each.name): str(each.value) for each in dimensions}
