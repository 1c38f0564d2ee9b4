"""Calls of handlers: what a request and its context give them, and what survives their mistakes."""

from __future__ import annotations

import asyncio
import threading
import unittest
from types import SimpleNamespace
from typing import Any, Callable

from tests.test_frames import Peer
from torchserve_ts import frames
from torchserve_ts.batch import Batch
from torchserve_ts.calls import Calls
from torchserve_ts.context import Context
from torchserve_ts.intermediate import send_intermediate_predict_response_async
from torchserve_ts.loader import Handler
from torchserve_ts.metrics import Metrics, MetricSender
from torchserve_ts.request import Request

LOAD = {
    "modelName": "m",
    "modelVersion": "1.0",
    "manifest": {},
    "modelConfig": {},
    "gpuId": -1,
    "modelDir": "/model",
    "batchSize": 1,
    "serverVersion": "1",
}


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class CallsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.peer = Peer()
        self.addCleanup(self.peer.close)
        self.sender = MetricSender(self.peer.link, None)
        fields = {"id": 7, "requestId": "r", "method": "handle", "window": 1000, "deadline": 1500}
        fields["headers"] = "ts_request_sequence_id\ns\nX-Mine\n1\n"
        self.request = Request(fields, self.peer.link, 0, 1000)
        self.batch = Batch()
        self.batch.add(self.request, [], memoryview(b""))
        metrics = Metrics(self.sender, "m", self.peer.link)
        self.context = Context(LOAD, 0, self.peer.link, metrics)._copy_for(self.batch.requests)

    def call(self, handle: Callable[..., Any]) -> None:
        handler = Handler(handle)
        calls = Calls(handler, self.peer.link, self.sender, "m", True)
        if handler.is_async:
            asyncio.run(calls.run_async(self.batch, self.context))
        else:
            calls.run(self.batch, self.context)

    def read(self) -> tuple[int, dict[str, Any]]:
        """Return type and map of the next frame."""
        frame = self.peer.read()
        return frames.read_header(frame[:10])[1], frames.read_map(frame[10:])

    def test_a_context_has_what_the_request_has_and_keeps_what_is_set(self) -> None:
        context = self.context
        self.assertEqual(context.get_response_status(0), (200, None))
        context.set_all_response_status(201, "Made")
        context.set_response_header(0, "Content-Type", "text/x")
        cases: list[tuple[object, object]] = [
            (context.deadline(), 1.5),
            (context.get_all_request_header(0), {"ts_request_sequence_id": "s", "X-Mine": "1"}),
            (context.get_sequence_id(0), "s"),
            (context.get_request_id(), "r"),
            (context.get_response_status(0), (201, "Made")),
            (context.get_response_content_type(0), "text/x"),
            (context.get_response_headers(0), {"content-type": "text/x"}),
            ((context.rank, context.world_size, context.explain, context.cancelled()), (0, 1, False, False)),
        ]
        for found, expected in cases:
            self.assertEqual(found, expected)

    def test_metrics_have_their_kind_unit_and_dimensions(self) -> None:
        metrics = self.context.metrics
        model = {"ModelName": "m", "Level": "Model"}
        dimension = [SimpleNamespace(name="a", value=1)]
        cases: list[tuple[Callable[[], None], tuple[str, str, dict[str, str], float]]] = [
            (lambda: metrics.add_counter("M", 1), ("counter", "count", model, 1)),
            (lambda: metrics.add_percent("M", 2, dimensions=dimension), ("gauge", "percent", {"a": "1", **model}, 2)),
            (lambda: metrics.add_error("M", 3), ("counter", "", {"Level": "Error"}, 3)),
            (lambda: metrics.add_size("M", 4, unit="kB"), ("gauge", "kB", model, 4)),
            (lambda: metrics.add_time("M", 5, unit="s", metric_type="histogram"), ("histogram", "s", model, 5)),
        ]
        for add, expected in cases:
            add()
            self.sender.flush()
            kind, sent = self.read()
            self.assertEqual(kind, frames.METRIC)
            self.assertEqual((sent["kind"], sent["unit"], sent["dimensions"], sent["values"][0]), expected)
            self.assertEqual(sent["requestIds"], ["r"])
        with self.assertRaisesRegex(ValueError, "unit of a size"):
            metrics.add_size("M", 1, unit="TB")

    def test_an_exception_without_a_text_fails_its_request(self) -> None:
        def handle(data: Any, context: Context) -> None:
            raise Unprintable

        async def handle_async(data: Any, context: Context) -> None:
            raise Unprintable

        for each in (handle, handle_async):
            self.setUp()
            self.call(each)
            kind, fields = self.read()
            self.assertEqual((kind, fields["error"]["code"]), (frames.FAILURE, "HANDLER_FAILED"))

    def test_a_callback_that_raises_is_logged_and_the_others_are_called(self) -> None:
        called: list[str] = []

        def broken() -> None:
            raise Unprintable

        self.context.on_cancel(broken)
        self.context.on_cancel(lambda: called.append("second"))
        self.request.cancel("client left")
        self.assertEqual(called, ["second"])
        kind, fields = self.read()
        self.assertEqual((kind, fields["level"], fields["requestId"]), (frames.LOG, "error", "r"))

    def test_concurrent_sends_wait_without_blocking_the_event_loop(self) -> None:
        async def handle(data: Any, context: Context) -> list[str]:
            def send(item: str) -> Any:
                return send_intermediate_predict_response_async([item], context.request_ids, "", 200, context)

            sends = asyncio.gather(*(send(item * 900) for item in "abc"))
            for _ in range(3):
                # The reader thread would do so. It is never called if a send blocks the loop.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                self.request.credit(1000)
            await sends
            return ["end"]

        self.call(handle)
        sent = [self.peer.read()[10:] for _ in range(4)]
        self.assertEqual(sent, [b"a" * 900, b"b" * 900, b"c" * 900, b"end"])

    def test_room_for_one_item_lets_one_of_two_threads_send(self) -> None:
        waiting = threading.Semaphore(0)

        class Watched(Request):
            @property
            def has_room(self) -> bool:
                room = super().has_room
                if not room:
                    waiting.release()
                return room

        self.request.__class__ = Watched
        self.request.push(b"x" * 1000)
        self.peer.read()
        threads = [threading.Thread(target=self.request.push, args=(b"item",)) for _ in range(2)]
        for thread in threads:
            thread.start()
            waiting.acquire()
        self.request.credit(65)
        self.assertEqual(self.peer.read()[10:], b"item")
        self.request.cancel("client left")
        for thread in threads:
            thread.join()
        self.request.finish(b"")
        self.assertEqual(self.read()[0], frames.FAILURE)

    def test_an_async_generator_may_wait_in_its_cleanup(self) -> None:
        events: list[str] = []

        async def handle(data: Any, context: Context) -> Any:
            try:
                self.request.cancel("client left")
                yield ["item"]
            finally:
                await asyncio.sleep(0)
                events.append("cleaned up")

        self.call(handle)
        self.assertEqual(events, ["cleaned up"])


if __name__ == "__main__":
    unittest.main()
