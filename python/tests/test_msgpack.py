"""The msgpack of the frames."""

from __future__ import annotations

import unittest
from typing import Any

from torchserve_ts.msgpack import pack, unpack

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63),
    *(-1, -32, -33, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, 1.5, -1e300),
    *("", "é", "x" * 31, "x" * 32, "x" * 255, "x" * 256, "x" * 65536),
    *(b"", b"x" * 255, b"x" * 256, b"x" * 65536),
    *([], list(range(15)), list(range(16)), [[]] * 65536),
    *({}, {"a": {"b": [1, None]}}, {str(key): key for key in range(16)}),
]


class MsgpackTest(unittest.TestCase):
    def test_reads_what_it_writes(self) -> None:
        for value in VALUES:
            self.assertEqual(unpack(pack(value)), value)

    def test_refuses_what_is_not_one_value(self) -> None:
        for data in (b"", b"\xc1", b"\xa5abc", b"\x92\x01", b"\x01\x01", b"\xd9", b"\xc7\x01\x01x"):
            with self.assertRaises(ValueError):
                unpack(data)
        with self.assertRaises(TypeError):
            pack(object())


if __name__ == "__main__":
    unittest.main()
