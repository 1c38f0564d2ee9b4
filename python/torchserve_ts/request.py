"""One request at the worker: its window, its cancellation, and its response in order with exactly one end."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable

from torchserve_ts.errors import RequestCancelled, ResponseTooLarge, describe, request_error
from torchserve_ts.frames import (
    ALIVE,
    FAILURE,
    FINISHED,
    ITEM_OVERHEAD_BYTES,
    NEXT,
    STREAM,
    header,
    map_frame,
    response_start,
)
from torchserve_ts.link import Link

_SIGN_INTERVAL = 0.2
"""Seconds between two signs of life."""


class Request:
    """The response of one request on its way to the server.

    The handler's thread sends; the reader thread grants credit and cancels. An item may exceed the window; the
    next one waits for credit.
    """

    def __init__(self, fields: dict[str, Any], link: Link, rank: int, max_bytes: int) -> None:
        self.id: int = fields["id"]
        self.request_id: str = fields["requestId"]
        self.method: str = fields["method"]
        self.deadline: float | None = fields.get("deadline")
        self.gone: Exception | None = None
        """Why it was cancelled or has failed; None while it is active."""
        self.ended = False
        """Whether its last response was sent, so that nothing may follow."""
        self.status: tuple[int, str | None] | None = None
        self.response_headers: dict[str, str] = {}
        self._header_lines: str = fields["headers"]
        self._request_headers: dict[str, str] | None = None
        self._link = link
        self.rank = rank
        self._max_bytes = max_bytes
        self._window: int = fields["window"]
        self._streamed = False
        self._sign_at = float("-inf")
        self._changed = threading.Condition()
        self._on_room: list[Callable[[], object]] = []
        self._on_gone: list[Callable[[], object]] = []

    @property
    def request_headers(self) -> dict[str, str]:
        """All headers, with the names as the client wrote them."""
        if self._request_headers is None:
            lines = self._header_lines.split("\n")
            self._request_headers = dict(zip(lines[::2], lines[1::2]))
        return self._request_headers

    def request_header(self, name: str) -> str | None:
        """Return a header, in whatever case; the last one of a repeated name."""
        headers = self.request_headers
        if name in headers:
            return headers[name]
        wanted = name.lower()
        found = [value for key, value in headers.items() if key.lower() == wanted]
        return found[-1] if found else None

    @property
    def has_room(self) -> bool:
        """Whether an item may be sent now. A request that is gone waits for nothing."""
        return self._window > 0 or self.gone is not None or self.rank != 0

    def wait_for_room(self) -> None:
        """Block until the client has read enough, or the request is cancelled."""
        with self._changed:
            self._changed.wait_for(lambda: self.has_room)

    def when_room(self, callback: Callable[[], object]) -> None:
        """Call back once, from the reader thread or at once, when there is room."""
        with self._changed:
            if not self.has_room:
                self._on_room.append(callback)
                return
        self._run([callback])

    def credit(self, count: int) -> None:
        """Add bytes that the client has read."""
        with self._changed:
            self._window += count
        self._wake()

    def cancel(self, reason: str) -> None:
        """Cancel the request; its end is sent when the handler has returned."""
        self.drop(RequestCancelled(reason))

    def drop(self, error: Exception) -> None:
        """Fail the request. Nothing of it is sent until its end."""
        with self._changed:
            if self.gone is not None or self.ended:
                return
            self.gone = error
            callbacks, self._on_gone = self._on_gone, []
        self._wake()
        self._run(callbacks)

    def when_gone(self, callback: Callable[[], object]) -> None:
        """Call back once, from the reader thread or at once, when the request is gone."""
        with self._changed:
            if self.gone is None:
                self._on_gone.append(callback)
                return
        self._run([callback])

    def push(self, body: bytes | bytearray) -> None:
        """Send an item at once. The caller waits for room before the next one."""
        if self.rank != 0 or not self._fits(body):
            return
        with self._changed:
            # Another thread may have used the room for which the caller has waited.
            self._changed.wait_for(lambda: self.has_room)
            if self.gone is not None:
                return
            self._window -= len(body) + ITEM_OVERHEAD_BYTES
        self._link.send_body(response_start(STREAM | NEXT, self.id, self._head(), len(body)), body)
        self._streamed = True

    def finish(self, body: bytes | bytearray) -> None:
        """Send the last response."""
        if self.ended:
            return
        if self.rank != 0:
            self._link.send(header(0, FINISHED, 0, self.id))
        elif self.gone is not None or not self._fits(body):
            self._link.send(map_frame(FAILURE, {"error": request_error(self.gone or Exception())}, self.id))
        else:
            flags = STREAM if self._streamed else 0
            self._link.send_body(response_start(flags, self.id, self._head(), len(body)), body)
        self.ended = True

    def fail(self, error: Exception) -> None:
        """Send a failure as the end."""
        self.drop(error)
        self.finish(b"")

    def alive(self) -> None:
        """Tell the server that the handler works on the request, so that its time limits begin anew."""
        now = time.monotonic()
        if self.rank != 0 or self.gone is not None or now - self._sign_at < _SIGN_INTERVAL:
            return
        self._sign_at = now
        self._link.send(header(0, ALIVE, 0, self.id))

    def _head(self) -> dict[str, Any] | None:
        """Status and headers, which count on the first response only."""
        if self._streamed or (self.status is None and not self.response_headers):
            return None
        head: dict[str, Any] = {}
        if self.status is not None:
            head["status"] = self.status[0]
            if self.status[1]:
                head["reason"] = self.status[1]
        headers = dict(self.response_headers)
        for name in list(headers):
            if name.lower() == "content-type":
                head["contentType"] = headers.pop(name)
        if headers:
            head["headers"] = headers
        return head

    def _fits(self, body: bytes | bytearray) -> bool:
        if len(body) <= self._max_bytes:
            return True
        limit = self._max_bytes
        self.drop(ResponseTooLarge(f"A response of {len(body)} bytes is larger than max_response_size ({limit})"))
        return False

    def _wake(self) -> None:
        with self._changed:
            if not self.has_room:
                return
            callbacks, self._on_room = self._on_room, []
            self._changed.notify_all()
        self._run(callbacks)

    def _run(self, callbacks: list[Callable[[], object]]) -> None:
        """Call the callbacks. What they raise is logged, because the reader thread must go on."""
        for callback in callbacks:
            try:
                callback()
            except BaseException as error:
                self._link.log("error", f"A callback raised: {describe(error)}", self.request_id)
