"""The frames that the TypeScript side recorded, and those that it reads (tests/protocol/recorded-frames.json)."""

from __future__ import annotations

import json
import os
import socket
import unittest
from pathlib import Path
from typing import Any

from torchserve_ts import frames
from torchserve_ts.batch import Batch
from torchserve_ts.errors import PredictionException
from torchserve_ts.link import Link
from torchserve_ts.metrics import Metrics, MetricSender
from torchserve_ts.request import Request

RECORDED = Path(__file__).parents[2] / "tests" / "protocol" / "recorded-frames.json"


class Peer:
    """A link whose other end the test reads."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(10)
        self.link = Link(theirs, 1 << 20)

    def read(self) -> bytes:
        head = self._exactly(frames.HEADER_BYTES)
        return head + self._exactly(frames.read_header(head)[0])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.ours.recv(size - len(data))
        return data

    def close(self) -> None:
        self.link.close()
        self.ours.close()


def request(peer: Peer, **fields: Any) -> Request:
    known = {"id": 7, "requestId": "r", "method": "handle", "headers": "", "window": 1000, "parts": []}
    return Request({**known, **fields}, peer.link, 0, 1000)


class FramesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.peer = Peer()
        self.addCleanup(self.peer.close)
        self.recorded = json.loads(RECORDED.read_text())

    def test_reads_what_the_server_sends(self) -> None:
        for each in self.recorded["toWorker"]:
            self.peer.ours.sendall(bytes.fromhex(each["hex"]))
            frame = self.peer.link.receive()
            assert frame is not None
            kind, flags, number, payload = frame
            message = dict(each["message"])
            name = message.pop("type")
            with self.subTest(name):
                self.assertEqual((kind, flags), (getattr(frames, _constant(name)), 0))
                if name == "predict":
                    requests, at = frames.read_predict(payload)
                    self.assertEqual(_with_data(requests, payload[at:]), message["requests"])
                elif name == "credit":
                    self.assertEqual((number, frames.read_u32(payload)), (message["id"], message["bytes"]))
                elif name == "cancel":
                    self.assertEqual((number, frames.cancel_reason(payload)), (message["id"], message["reason"]))
                elif name == "ping":
                    self.assertEqual(number, message["nonce"])
                elif name == "unload":
                    self.assertEqual(payload, b"")
                else:
                    self.assertEqual(frames.read_map(payload), message)

    def test_sends_what_the_server_was_seen_to_read(self) -> None:
        sent = [self.sent(each) for each in self.made()]
        if os.environ.get("UPDATE_RECORDING"):
            for each, frame in zip(self.recorded["fromWorker"], sent):
                each["hex"] = frame
            RECORDED.write_text(json.dumps(self.recorded, indent=2) + "\n")
        self.assertEqual(sent, [each["hex"] for each in self.recorded["fromWorker"]])

    def sent(self, make: Any) -> str:
        make()
        return self.peer.read().hex()

    def made(self) -> list[Any]:
        """Return what makes each frame of ``fromWorker``, in its order."""
        link = self.peer.link
        whole, item, last, failed = (request(self.peer) for _ in range(4))
        batch = Batch()
        batch.add(whole, [], memoryview(b""))
        whole.status = (202, "Taken")
        whole.response_headers = {"content-type": "text/x", "x-own": "é"}
        sender = MetricSender(link, None)

        def metric() -> None:
            metrics = Metrics(sender, "m", link).for_requests({0: "r"})
            metrics.add_counter("Own", 2, dimensions={"Kind": "test"})
            sender.flush()

        def streamed() -> None:
            last.push(b"1")
            self.peer.read()
            last.finish(b"2")

        ready = {"protocolVersion": 9, "pid": 70000, "rank": 0, "runtime": "python 3"}
        return [
            lambda: link.send(frames.map_frame(frames.READY, ready)),
            lambda: link.send(frames.map_frame(frames.LOADED, {"methods": ["handle"]})),
            lambda: batch.finish(["body"]),
            lambda: item.push(b"item"),
            streamed,
            lambda: failed.fail(_raised(PredictionException("no", 418))),
            lambda: request(self.peer).alive(),
            lambda: Request(
                {"id": 8, "requestId": "r", "method": "handle", "headers": "", "window": 1}, link, 1, 1
            ).finish(b""),
            lambda: link.log("warn", "words", "r"),
            metric,
            lambda: link.send(frames.header(0, frames.PONG, 0, 4_000_000_000)),
        ]


class RequestTest(unittest.TestCase):
    def setUp(self) -> None:
        self.peer = Peer()
        self.addCleanup(self.peer.close)

    def test_an_item_may_exceed_the_window_and_the_next_waits(self) -> None:
        one = request(self.peer, window=10)
        one.push(b"x" * 100)
        self.assertFalse(one.has_room)
        one.credit(154)
        self.assertFalse(one.has_room)
        one.credit(1)
        self.assertTrue(one.has_room)

    def test_a_response_over_the_limit_fails_its_request(self) -> None:
        request(self.peer).finish(b"x" * 1001)
        self.assertIn(b"RESPONSE_TOO_LARGE", self.peer.read())

    def test_nothing_follows_the_end(self) -> None:
        one = request(self.peer)
        one.finish(b"1")
        one.finish(b"2")
        one.fail(ValueError())
        self.peer.link.log("info", "after")
        self.assertTrue(self.peer.read().endswith(b"1"))
        self.assertIn(b"after", self.peer.read())

    def test_headers_are_found_in_whatever_case(self) -> None:
        one = request(self.peer, headers="X-Mine\n1\nx-mine\n2\n")
        self.assertEqual((one.request_header("X-Mine"), one.request_header("X-MINE")), ("1", "2"))
        self.assertIsNone(one.request_header("other"))

    def test_a_forked_child_writes_nothing_to_the_connection(self) -> None:
        child = os.fork()
        if child == 0:
            self.peer.link.log("info", "from the child")
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.peer.link.log("info", "from the worker")
        self.assertIn(b"from the worker", self.peer.read())


def _constant(name: str) -> str:
    return "SEQUENCE_END" if name == "sequenceEnd" else name.upper()


def _with_data(requests: list[dict[str, Any]], data: bytes) -> list[dict[str, Any]]:
    """Return the requests as the recording has them: the data of each part as text."""
    at = 0
    for each in requests:
        for part in each["parts"]:
            size = part.pop("size")
            part["data"] = data[at : at + size].decode()
            at += size
    return requests


def _raised(error: Exception) -> Exception:
    """Return it without a traceback, whose paths differ from machine to machine."""
    return error.with_traceback(None)


if __name__ == "__main__":
    unittest.main()
