"""The frames between server and worker. docs/architecture.md has the table of all frames.

A frame has a header of 10 bytes, big-endian: u32 length of the payload, u8 type, u8 flags, u32 id of the request
(0: none). The payload follows.
"""

from __future__ import annotations

import struct
from typing import Any

from torchserve_ts.msgpack import pack, unpack

PROTOCOL_VERSION = 9

READY = 1
LOAD = 2
LOADED = 3
PREDICT = 4
RESPONSE = 5
FAILURE = 6
CREDIT = 7
INPUT = 8
CANCEL = 9
FINISHED = 10
LOG = 11
METRIC = 12
PING = 13
PONG = 14
UNLOAD = 15
SEQUENCE_END = 18
ALIVE = 19

STREAM = 1
"""Flag of RESPONSE: it belongs to a stream. Without NEXT it is the last one."""
NEXT = 2
"""Flag of RESPONSE: more follow."""
HEAD = 4
"""Flag of RESPONSE: status, content type and headers come before the body."""

ITEM_OVERHEAD_BYTES = 64
"""What a response costs its window besides its body."""

CANCEL_REASONS = ("client left", "deadline", "timeout", "shutdown", "failed", "operator")

_HEADER = struct.Struct(">IBBI")
_U32 = struct.Struct(">I")
HEADER_BYTES = _HEADER.size


class ProtocolError(Exception):
    """The other side sent what is not a frame, so nothing after it can be trusted."""


def header(length: int, kind: int, flags: int = 0, request: int = 0) -> bytes:
    """Return the header of a frame with a payload of ``length`` bytes."""
    return _HEADER.pack(length, kind, flags, request)


def read_header(data: bytes) -> tuple[int, int, int, int]:
    """Return length of the payload, type, flags, id."""
    length, kind, flags, request = _HEADER.unpack(data)
    return length, kind, flags, request


def map_frame(kind: int, fields: dict[str, Any], request: int = 0) -> bytes:
    """Return a frame whose payload is one map. Fields that are None are left out."""
    payload = pack({key: value for key, value in fields.items() if value is not None})
    return header(len(payload), kind, 0, request) + payload


def response_start(flags: int, request: int, head: dict[str, Any] | None, body_bytes: int) -> bytes:
    """Return everything of a RESPONSE that precedes the body."""
    if not head:
        return header(body_bytes, RESPONSE, flags, request)
    packed = pack(head)
    size = 4 + len(packed) + body_bytes
    return header(size, RESPONSE, flags | HEAD, request) + _U32.pack(len(packed)) + packed


def read_map(payload: bytes) -> dict[str, Any]:
    """Return the map of a payload."""
    try:
        fields = unpack(payload)
    except Exception as error:
        raise ProtocolError(f"a payload is not valid msgpack: {error}") from error
    if not isinstance(fields, dict):
        raise ProtocolError("a payload must be a map")
    return fields


def read_u32(payload: bytes) -> int:
    """Return the number of a CREDIT frame."""
    if len(payload) != 4:
        raise ProtocolError("a credit frame has four bytes")
    number: int = _U32.unpack(payload)[0]
    return number


def read_predict(payload: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the requests of a PREDICT frame, and where the bytes of their parts begin."""
    if len(payload) < 4:
        raise ProtocolError("a predict frame has a length and a map")
    start = 4 + int(_U32.unpack_from(payload)[0])
    if start > len(payload):
        raise ProtocolError("the map of a predict frame is longer than the frame")
    requests = read_map(payload[4:start]).get("requests")
    if not isinstance(requests, list):
        raise ProtocolError("a predict frame has a list of requests")
    return requests, start


def cancel_reason(payload: bytes) -> str:
    """Return why a CANCEL frame cancels."""
    if len(payload) != 1 or payload[0] >= len(CANCEL_REASONS):
        raise ProtocolError("a cancel frame has one byte, its reason")
    return CANCEL_REASONS[payload[0]]
