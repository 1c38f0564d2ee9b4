"""The functions that stand for the package msgpack where it is not installed."""

from __future__ import annotations

import unittest
from typing import Any

from torchserve_ts.msgpack import pack_pure, unpack_pure

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
            self.assertEqual(unpack_pure(pack_pure(value)), value)

    def test_agrees_with_the_package(self) -> None:
        try:
            import msgpack
        except ImportError:
            self.skipTest("msgpack is not installed")
        for value in VALUES:
            self.assertEqual(msgpack.unpackb(pack_pure(value)), value)
            self.assertEqual(unpack_pure(msgpack.packb(value)), value)

    def test_refuses_what_is_not_one_value(self) -> None:
        for data in (b"", b"\xc1", b"\xa5abc", b"\x92\x01", b"\x01\x01", b"\xd9", b"\xc7\x01\x01x"):
            with self.assertRaises(ValueError):
                unpack_pure(data)
        with self.assertRaises(TypeError):
            pack_pure(object())


if __name__ == "__main__":
    unittest.main()
