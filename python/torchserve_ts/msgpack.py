"""msgpack for the maps in frames: nil, booleans, integers, floats, texts, bytes, arrays, maps; no extensions."""

from __future__ import annotations

import struct
from typing import Any


def pack(value: Any) -> bytes:
    """Encode a value. Raises TypeError for a type without a form in msgpack."""
    out = bytearray()
    _pack(out, value)
    return bytes(out)


def unpack(data: bytes) -> Any:
    """Decode one value. Raises ValueError when the bytes are not exactly one value."""
    try:
        value, end = _unpack(data, 0)
    except (struct.error, IndexError) as error:
        raise ValueError("the bytes end within a value") from error
    if end != len(data):
        raise ValueError("more bytes follow the value")
    return value


def _pack(out: bytearray, value: Any) -> None:
    if value is None:
        out.append(0xC0)
    elif value is True or value is False:
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, int):
        _pack_int(out, value)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xCB, value)
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        _pack_size(out, len(text), (0xA0, 32), (0xD9, 0xDA, 0xDB))
        out += text
    elif isinstance(value, (bytes, bytearray)):
        _pack_size(out, len(value), None, (0xC4, 0xC5, 0xC6))
        out += value
    elif isinstance(value, (list, tuple)):
        _pack_size(out, len(value), (0x90, 16), (None, 0xDC, 0xDD))
        for each in value:
            _pack(out, each)
    elif isinstance(value, dict):
        _pack_size(out, len(value), (0x80, 16), (None, 0xDE, 0xDF))
        for key, each in value.items():
            _pack(out, key)
            _pack(out, each)
    else:
        raise TypeError(f"{type(value).__name__} has no form in msgpack")


def _pack_int(out: bytearray, value: int) -> None:
    if 0 <= value < 128 or -32 <= value < 0:
        out.append(value & 0xFF)
    elif value >= 0:
        for code, form, limit in ((0xCC, "B", 8), (0xCD, "H", 16), (0xCE, "I", 32), (0xCF, "Q", 64)):
            if value < 1 << limit:
                out += struct.pack(">B" + form, code, value)
                return
        raise OverflowError("an integer has at most 64 bits")
    else:
        for code, form, limit in ((0xD0, "b", 7), (0xD1, "h", 15), (0xD2, "i", 31), (0xD3, "q", 63)):
            if value >= -(1 << limit):
                out += struct.pack(">B" + form, code, value)
                return
        raise OverflowError("an integer has at most 64 bits")


def _pack_size(out: bytearray, size: int, short: tuple[int, int] | None, codes: tuple[int | None, int, int]) -> None:
    """Write the length of a text, of bytes, or of a collection: within the first byte if it fits."""
    if short is not None and size < short[1]:
        out.append(short[0] | size)
    elif codes[0] is not None and size < 1 << 8:
        out += struct.pack(">BB", codes[0], size)
    elif size < 1 << 16:
        out += struct.pack(">BH", codes[1], size)
    else:
        out += struct.pack(">BI", codes[2], size)


_FIXED: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_SIZES = {
    0xC4: (">B", "bytes"), 0xC5: (">H", "bytes"), 0xC6: (">I", "bytes"),
    0xD9: (">B", "text"), 0xDA: (">H", "text"), 0xDB: (">I", "text"),
    0xDC: (">H", "list"), 0xDD: (">I", "list"), 0xDE: (">H", "map"), 0xDF: (">I", "map"),
}  # fmt: skip


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 256, at
    if code < 0x90:
        return _collection(data, at, code & 15, "map")
    if code < 0xA0:
        return _collection(data, at, code & 15, "list")
    if code < 0xC0:
        return _collection(data, at, code & 31, "text")
    if code in _FIXED:
        return _FIXED[code], at
    number = _NUMBERS.get(code)
    if number is not None:
        return struct.unpack_from(number, data, at)[0], at + struct.calcsize(number)
    sized = _SIZES.get(code)
    if sized is None:
        raise ValueError(f"the type {code:#x} is not known")
    form, kind = sized
    return _collection(data, at + struct.calcsize(form), struct.unpack_from(form, data, at)[0], kind)


def _collection(data: bytes, at: int, size: int, kind: str) -> tuple[Any, int]:
    if kind in ("text", "bytes"):
        end = at + size
        if end > len(data):
            raise ValueError("the bytes end within a value")
        piece = data[at:end]
        return (piece.decode("utf-8", "surrogatepass") if kind == "text" else bytes(piece)), end
    if kind == "list":
        items = []
        for _ in range(size):
            item, at = _unpack(data, at)
            items.append(item)
        return items, at
    fields = {}
    for _ in range(size):
        key, at = _unpack(data, at)
        fields[key], at = _unpack(data, at)
    return fields, at
