"""The worker's end of its connection to the server."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from torchserve_ts.frames import (
    HEADER_BYTES,
    LOG,
    ProtocolError,
    map_frame,
    read_header,
)

_JOINED_BYTES = 16_384
"""Bodies below this size are copied behind their header; others are written from where they are."""
_MAX_LOG_CHARACTERS = 32_768


class Link:
    """Sends and receives frames. Any thread may send; one thread receives."""

    def __init__(self, connection: socket.socket, max_frame_bytes: int) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb", buffering=65_536)
        self._max_frame_bytes = max_frame_bytes
        self._lock = threading.Lock()
        self._closed = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def send(self, frame: bytes) -> None:
        """Write a whole frame. What follows the end of the connection is dropped."""
        with self._lock:
            self._write(frame)

    def send_body(self, start: bytes, body: bytes | bytearray | memoryview) -> None:
        """Write a frame whose payload ends with ``body``."""
        if len(body) < _JOINED_BYTES:
            self.send(start + bytes(body))
            return
        with self._lock:
            self._write(start)
            self._write(body)

    def log(self, level: str, message: str, request_id: str | None = None) -> None:
        """Write a line of the handler's logger to the model log of the server."""
        text = message[:_MAX_LOG_CHARACTERS]
        self.send(map_frame(LOG, {"level": level, "message": text, "requestId": request_id}))

    def receive(self) -> tuple[int, int, int, bytes] | None:
        """Return type, flags, id and payload of the next frame; None when the server has closed the connection."""
        head = self._read(HEADER_BYTES)
        if head is None:
            return None
        length, kind, flags, request = read_header(head)
        if length > self._max_frame_bytes:
            raise ProtocolError(f"a frame of {length} bytes exceeds the limit of {self._max_frame_bytes}")
        payload = self._read(length) if length else b""
        return None if payload is None else (kind, flags, request, payload)

    def close(self) -> None:
        """Let the server read everything that was sent, then its end."""
        with self._lock:
            self._closed = True
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def _read(self, size: int) -> bytes | None:
        try:
            data = self._reader.read(size)
        except (OSError, ValueError):
            return None
        return data if data is not None and len(data) == size else None

    def _write(self, data: Any) -> None:
        if self._closed:
            return
        try:
            self._socket.sendall(data)
        except OSError:
            self._closed = True

    def _leave_to_parent(self) -> None:
        """In a forked child: the connection belongs to the worker, whose thread may hold the lock."""
        self._lock = threading.Lock()
        self._closed = True
        if self._socket.fileno() >= 0:
            os.close(self._socket.detach())
