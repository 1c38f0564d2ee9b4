"""The requests that one call of the handler answers."""

from __future__ import annotations

import json
import sys
from typing import Any

from torchserve_ts.errors import InvalidOutput
from torchserve_ts.link import Link
from torchserve_ts.request import Request

_MAX_EXAMPLE = 40


class Batch:
    """Requests with the same method, and the inputs of the handler's call."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._parts: list[tuple[list[dict[str, Any]], memoryview]] = []

    def add(self, request: Request, parts: list[dict[str, Any]], payload: memoryview) -> None:
        """Add a request with its parts, and the bytes of all of them in order."""
        self.requests.append(request)
        self._parts.append((parts, payload))

    @property
    def method(self) -> str:
        """``handle``, ``explain`` or ``describe``."""
        return self.requests[0].method

    @property
    def gone(self) -> Exception | None:
        """Why the whole batch is of no use any more; None while a request is active."""
        gone = None
        for request in self.requests:
            gone = request.gone
            if gone is None:
                return None
        return gone

    def inputs(self, decode: bool, link: Link) -> list[dict[str, Any]]:
        """Return a dict for each request: name of the part to value. Call it once: it lets go of the bytes.

        JSON is parsed, text is a ``str``, and all else a ``bytearray``.
        """
        inputs = []
        for request, (parts, payload) in zip(self.requests, self._parts):
            at = 0
            data: dict[str, Any] = {}
            for part in parts:
                end = at + int(part["size"])
                value = payload[at:end]
                at = end
                data[part["name"]] = _decode(part, value, request, link) if decode else bytearray(value)
            inputs.append(data)
        self._parts = []
        return inputs

    def finish(self, answer: Any) -> None:
        """Send what the handler returned: one item for each request. An item may fail its own request."""
        if self.requests[0].rank != 0:
            for request in self.requests:
                request.finish(b"")
            return
        items = check_answer(answer, len(self.requests), "return")
        for request, item in zip(self.requests, items):
            try:
                if isinstance(item, Exception):
                    request.fail(item)
                else:
                    request.finish(b"" if request.gone is not None else encode(item))
            except InvalidOutput as error:
                request.fail(error)

    def push(self, answer: Any) -> None:
        """Send an intermediate item to each request. None sends nothing, but its time limits begin anew."""
        items = check_answer(answer, len(self.requests), "yield")
        for request, item in zip(self.requests, items):
            push_item(request, item)

    def fail(self, error: Exception) -> None:
        """Fail every request that has not ended."""
        for request in self.requests:
            request.fail(error)


def push_item(request: Request, item: Any) -> None:
    """Send one intermediate item. One that is an error, or cannot be encoded, fails its own request only."""
    if item is None:
        request.alive()
    elif isinstance(item, Exception):
        request.drop(item)
    else:
        try:
            request.push(encode(item))
        except InvalidOutput as error:
            request.drop(error)


def check_answer(answer: Any, count: int, verb: str) -> list[Any]:
    """Return the items. Raises InvalidOutput when they are not a list with one item for each request."""
    if not isinstance(answer, (list, tuple)):
        kind = "nothing" if answer is None else f"a {type(answer).__name__}"
        short = isinstance(answer, str) and len(answer) <= _MAX_EXAMPLE
        example = repr([answer]) if short else "[item]"
        raise InvalidOutput(
            "Invalid model predict output",
            f"The handler {verb}ed {kind}; it must {verb} a list with one item per request: {example}",
        )
    if len(answer) != count:
        raise InvalidOutput(
            "number of batch response mismatched",
            f"The handler {verb}ed {len(answer)} items for {count} requests",
        )
    return list(answer)


def encode(item: Any) -> bytes | bytearray:
    """Return an item's bytes: bytes as they are, texts as UTF-8, tensors as torch.save writes them, else JSON."""
    if isinstance(item, (bytes, bytearray)):
        return item
    if isinstance(item, str):
        return item.encode("utf-8", "replace")
    if item is None:
        return b""
    if isinstance(item, memoryview):
        return item.tobytes()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(item, getattr(torch, "Tensor", ())):
        import io

        buffer = io.BytesIO()
        torch.save(item, buffer)
        return buffer.getvalue()
    try:
        return json.dumps(item, indent=2).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidOutput(
            "Unsupported model output data type.",
            f"An item must be a text, bytes, or a value that JSON can hold: {error}",
        ) from error


def _decode(part: dict[str, Any], value: memoryview, request: Request, link: Link) -> Any:
    kind = (part.get("contentType") or "").lower()
    try:
        if kind == "application/json":
            return json.loads(str(value, "utf-8"))
        if kind.startswith("text"):
            return str(value, "utf-8")
    except (ValueError, RecursionError) as error:
        name = part["name"]
        link.log("warn", f'Part "{name}" cannot be read as {kind}; the handler gets its bytes: {error}',
                 request.request_id)  # fmt: skip
    return bytearray(value)
