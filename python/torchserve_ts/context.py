"""What a handler knows about its model and, during a call, about the batch."""

from __future__ import annotations

import copy
import os
import re
from typing import Any, Callable

from torchserve_ts.link import Link
from torchserve_ts.metrics import Metrics
from torchserve_ts.request import Request

_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}\Z")


class Logger:
    """Writes to the model log of the server, with the request id if an index is given."""

    def __init__(self, link: Link, requests: Callable[[], list[Request]]) -> None:
        self._link = link
        self._requests = requests

    def debug(self, message: object, idx: int | None = None) -> None:
        """Write a line of level debug."""
        self._log("debug", message, idx)

    def info(self, message: object, idx: int | None = None) -> None:
        """Write a line of level info."""
        self._log("info", message, idx)

    def warning(self, message: object, idx: int | None = None) -> None:
        """Write a line of level warn."""
        self._log("warn", message, idx)

    def error(self, message: object, idx: int | None = None) -> None:
        """Write a line of level error."""
        self._log("error", message, idx)

    def _log(self, level: str, message: object, idx: int | None) -> None:
        requests = self._requests()
        known = idx is not None and 0 <= idx < len(requests)
        self._link.log(level, str(message), requests[idx].request_id if known and idx is not None else None)


class Context:
    """TorchServe's context, with cancellation. An index is the position of a request in the batch, from 0.

    Handlers that run one call at a time get the same object in every call. With several calls at once, each has
    a copy with the attributes that ``initialize`` has set; ``cache`` is the same dict in all of them.
    """

    def __init__(self, load: dict[str, Any], rank: int, link: Link, metrics: Metrics) -> None:
        self.model_name: str = load["modelName"]
        self.model_version: str = load["modelVersion"]
        self.manifest: dict[str, Any] = load["manifest"]
        self.model_yaml_config: dict[str, Any] = load["modelConfig"]
        """The complete model-config.yaml."""
        gpu = int(load["gpuId"])
        self.system_properties: dict[str, Any] = {
            "model_dir": load["modelDir"],
            "gpu_id": gpu if gpu >= 0 else None,
            "batch_size": load["batchSize"],
            "server_name": "torchserve-ts",
            "server_version": load["serverVersion"],
            "limit_max_image_pixels": load.get("limitMaxImagePixels", True),
        }
        self.rank = rank
        """Number of this process in its rank group, from 0. Rank 0 sends the responses."""
        self.local_rank = int(os.environ.get("LOCAL_RANK", rank))
        self.world_size = int(os.environ.get("WORLD_SIZE", 1))
        self.cache: dict[str, Any] = {}
        """A store for the handler. The server deletes the entry of a sequence when it ends."""
        names = load.get("sequenceHeaders") or {}
        self.header_key_sequence_id: str = names.get("id", "ts_request_sequence_id")
        self.header_key_sequence_start: str = names.get("start", "ts_request_sequence_start")
        self.header_key_sequence_end: str = names.get("end", "ts_request_sequence_end")
        self.request_ids: dict[int, str] = {}
        """Index to request id."""
        self._requests: list[Request] = []
        self._link = link
        self._base_metrics = metrics
        self._bind(self._requests)

    def _bind(self, requests: list[Request]) -> None:
        """Make it the context of a call."""
        self._requests = requests
        self.request_ids = {index: request.request_id for index, request in enumerate(requests)}
        self.metrics = self._base_metrics.for_requests(self.request_ids)
        self.logger = Logger(self._link, lambda: requests)

    def _copy_for(self, requests: list[Request]) -> Context:
        """Return a context for a call beside others."""
        other = copy.copy(self)
        other._bind(requests)
        return other

    def batch_requests(self) -> list[Request]:
        """Return the requests of the call; for this package."""
        return self._requests

    @property
    def explain(self) -> bool:
        """Whether the requests ask for an explanation instead of a prediction."""
        return bool(self._requests) and self._requests[0].method == "explain"

    def cancelled(self, idx: int | None = None) -> bool:
        """Tell whether a request is cancelled; without an index, whether all are."""
        if idx is not None:
            return self._requests[idx].gone is not None
        return bool(self._requests) and all(request.gone is not None for request in self._requests)

    def on_cancel(self, callback: Callable[[], object], idx: int | None = None) -> None:
        """Call back once when a request is cancelled; without an index, when all are.

        It is called from another thread than the handler's.
        """
        if idx is not None:
            self._requests[idx].when_gone(callback)
            return
        requests = self._requests
        called: list[bool] = []

        def check() -> None:
            if not called and all(request.gone is not None for request in requests):
                called.append(True)
                callback()

        for request in requests:
            request.when_gone(check)

    def deadline(self, idx: int = 0) -> float | None:
        """Return the client's deadline in seconds since the epoch; None if it has none."""
        deadline = self._requests[idx].deadline
        return None if deadline is None else deadline / 1000

    def get_request_id(self, idx: int = 0) -> str | None:
        """Return the request id that users see."""
        return self.request_ids.get(idx)

    def get_request_header(self, idx: int, key: str) -> str | None:
        """Return a header of a request, in whatever case; None if the client did not send it."""
        return self._requests[idx].request_header(key)

    def get_all_request_header(self, idx: int) -> dict[str, str]:
        """Return all headers of a request."""
        return dict(self._requests[idx].request_headers)

    def get_sequence_id(self, idx: int) -> str | None:
        """Return the sequence of a request."""
        return self._requests[idx].request_header(self.header_key_sequence_id)

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Set the content type of a response. It has no effect after its first item."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        """Return the content type that was set."""
        return self._requests[idx].response_headers.get("content-type")

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """Set a header of a response. It has no effect after its first item. Raises ValueError if not valid."""
        if not _HEADER_NAME.match(key):
            raise ValueError(f"{key[:80]!r} is not a valid header name")
        text = str(value)
        if not _HEADER_VALUE.match(text):
            raise ValueError(f"The value of the header {key} is not valid")
        name = "content-type" if key.lower() == "content-type" else key
        self._requests[idx].response_headers[name] = text

    def get_response_headers(self, idx: int) -> dict[str, str]:
        """Return the headers that were set."""
        return self._requests[idx].response_headers

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Set the HTTP status of a response, 200 to 599. It has no effect after its first item."""
        if not isinstance(code, int) or not 200 <= code <= 599:
            raise ValueError(f"The status of a response must be from 200 to 599, not {code}")
        if not _HEADER_VALUE.match(phrase or ""):
            raise ValueError("The reason phrase is not valid")
        self._requests[idx].status = (code, phrase or None)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """Set the HTTP status of every response of the batch."""
        for idx in range(len(self._requests)):
            self.set_response_status(code, phrase, idx)

    def get_response_status(self, idx: int) -> tuple[int, str | None]:
        """Return the status and its phrase."""
        return self._requests[idx].status or (200, None)
