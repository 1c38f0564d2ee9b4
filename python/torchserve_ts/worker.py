"""The worker: one model, one connection.

The main thread loads and calls the handler. A reader thread takes frames: it answers pings, and passes credit and
cancels to the requests at once, also while the handler computes.
"""

from __future__ import annotations

import os
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable

from torchserve_ts import frames
from torchserve_ts.batch import Batch
from torchserve_ts.calls import Calls
from torchserve_ts.context import Context
from torchserve_ts.errors import describe, load_error
from torchserve_ts.link import Link
from torchserve_ts.loader import Handler, add_model_folder, load_handler
from torchserve_ts.metrics import Metrics, MetricSender
from torchserve_ts.request import Request

if TYPE_CHECKING:
    import asyncio

_LEAVE_GRACE = 2.5
"""Seconds that running requests have to end when the server is gone."""
_CLOSE_GRACE = 2.0
"""Seconds for the server to read what was sent, and to close its side."""

Work = Callable[[], None]


class Worker:
    """Serves one connection until the server closes it or unloads the model."""

    def __init__(self, link: Link, rank: int, packages: str | None) -> None:
        self._link = link
        self._packages = packages
        self._rank = rank
        self._requests: dict[int, Request] = {}
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._post: Callable[[Work | None], None] = self._work.put
        self._post_lock = threading.Lock()
        self._gone = threading.Event()
        """The server has closed the connection."""
        self._load: dict[str, Any] = {}
        self._max_bytes = 0
        self._handler: Handler | None = None
        self._context: Context | None = None
        self._calls: Calls | None = None
        self._sender: MetricSender | None = None
        self._threads: Any = None

    def run(self) -> int:
        """Serve. Returns the exit status."""
        fields = {
            "protocolVersion": frames.PROTOCOL_VERSION,
            "pid": os.getpid(),
            "rank": self._rank,
            "runtime": "python " + sys.version.split()[0],
        }
        self._link.send(frames.map_frame(frames.READY, fields))
        threading.Thread(target=self._read, name="torchserve-ts-reader", daemon=True).start()
        status = self._serve()
        self._link.close()
        self._gone.wait(_CLOSE_GRACE)
        return status

    def finish(self) -> None:
        """End after the requests that have arrived; safe in a signal handler."""
        self._post(None)

    def _serve(self) -> int:
        """Load the model, then run what the reader posts, until it posts None."""
        while not self._load:
            work = self._work.get()
            if work is None:
                return 0
            work()
        load = self._load
        try:
            self._prepare(load)
            assert self._handler is not None
            if not self._handler.is_async:
                self._calls_of().first(self._context_of())
                self._loaded()
        except Exception as error:
            self._refuse(error)
            return 1
        if self._handler.is_async:
            import asyncio

            return asyncio.run(self._serve_async())
        self._serve_calls()
        self._shut_down()
        return 0

    def _serve_calls(self) -> None:
        while True:
            if self._work.empty():
                self._flush_metrics()
            work = self._work.get()
            if work is None:
                break
            work()
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    async def _serve_async(self) -> int:
        import asyncio

        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()
        self._tasks = tasks
        try:
            await self._calls_of().first_async(self._context_of())
        except Exception as error:
            self._refuse(error)
            return 1

        def take(work: Work | None) -> None:
            if work is None:
                ended.set()
            else:
                work()

        with self._post_lock:
            self._post = lambda work: _call_soon(loop, take, work)
        while not self._work.empty():
            take(self._work.get())
        self._loaded()
        await ended.wait()
        if tasks:
            await asyncio.wait(tasks)
        await self._shut_down_async()
        return 0

    def _prepare(self, load: dict[str, Any]) -> None:
        for key, what in (("continuousBatching", "continuousBatching"), ("envelope", "a service envelope")):
            if load.get(key):
                raise NotImplementedError(
                    f"A model with {what} needs TorchServe's worker: "
                    f"{sys.executable or 'python'} -m pip install torchserve torch"
                )
        name = (load["manifest"].get("model") or {}).get("handler") or ""
        self._sender = MetricSender(self._link, load.get("metrics"))
        self._context = Context(load, self._rank, self._link, Metrics(self._sender, load["modelName"], self._link))
        add_model_folder(load["modelDir"], name, self._packages)
        self._handler = load_handler(name)
        self._calls = Calls(self._handler, self._link, self._sender, load["modelName"], bool(load["decodeInput"]))
        if load["modelConfig"].get("asyncCommunication") is True and not self._handler.is_async:
            from concurrent.futures import ThreadPoolExecutor

            most = load["modelConfig"].get("maxConcurrency", 100)
            self._threads = ThreadPoolExecutor(most, "torchserve-ts-call")

    def _calls_of(self) -> Calls:
        assert self._calls is not None
        return self._calls

    def _context_of(self) -> Context:
        assert self._context is not None
        return self._context

    def _loaded(self) -> None:
        self._flush_metrics()
        self._link.send(frames.map_frame(frames.LOADED, {"methods": ["handle"]}))

    def _refuse(self, error: Exception) -> None:
        self._link.send(frames.map_frame(frames.LOADED, {"error": load_error(error)}))
        print(f"The handler did not load: {describe(error)}", file=sys.stderr, flush=True)

    def _flush_metrics(self) -> None:
        if self._sender is not None:
            self._sender.flush()

    def _call(self, batch: Batch) -> None:
        """Begin a batch, in the thread or the event loop of the handler."""
        assert self._handler is not None
        calls, context = self._calls_of(), self._context_of()
        if self._handler.is_async:
            self._start_task(batch, context._copy_for(batch.requests))
        elif self._threads is not None:
            own = context._copy_for(batch.requests)
            self._threads.submit(self._run_in_thread, calls, batch, own)
        else:
            context._of_call(batch.requests)
            self._run(calls, batch, context)

    def _run(self, calls: Calls, batch: Batch, context: Context) -> None:
        calls.run(batch, context)
        self._forget(batch)

    def _run_in_thread(self, calls: Calls, batch: Batch, context: Context) -> None:
        try:
            self._run(calls, batch, context)
        except BaseException as error:
            # A thread pool would keep it, and the request would never end.
            print(f"The handler ended the worker: {describe(error)}", file=sys.stderr, flush=True)
            os._exit(1)

    def _start_task(self, batch: Batch, context: Context) -> None:
        import asyncio

        async def run() -> None:
            task = asyncio.current_task()
            assert task is not None
            await self._calls_of().run_async(batch, context, task)

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._forget(batch)
            if not self._tasks:
                self._flush_metrics()

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(done)

    def _forget(self, batch: Batch) -> None:
        for request in batch.requests:
            self._requests.pop(request.id, None)

    def _end_sequence(self, sequence: str) -> None:
        context = self._context_of()
        hook = self._handler and self._handler.on_sequence_end
        try:
            ended = hook(sequence, context) if hook else None
            if ended is not None and hasattr(ended, "__await__"):
                import asyncio

                self._tasks.add(asyncio.ensure_future(ended))
        except Exception as error:
            self._link.log("error", f"The handler raised in on_sequence_end: {describe(error)}")
        context.cache.pop(sequence, None)

    def _shut_down(self) -> None:
        shutdown = self._handler and self._handler.shutdown
        try:
            if shutdown:
                shutdown()
        except Exception as error:
            self._link.log("error", f"The handler raised in shutdown: {describe(error)}")
        self._flush_metrics()

    async def _shut_down_async(self) -> None:
        shutdown = self._handler and self._handler.shutdown
        try:
            ended = shutdown() if shutdown else None
            if ended is not None and hasattr(ended, "__await__"):
                await ended
        except Exception as error:
            self._link.log("error", f"The handler raised in shutdown: {describe(error)}")
        self._flush_metrics()

    def _read(self) -> None:
        """Take frames until the connection ends; then the process ends."""
        status = 0
        try:
            while True:
                frame = self._link.receive()
                if frame is None:
                    break
                self._receive(*frame)
        except Exception as error:
            print(f"The connection to the frontend broke: {error}", file=sys.stderr, flush=True)
            status = 1
        self._gone.set()
        for request in list(self._requests.values()):
            request.cancel("shutdown")
        self._send_work(None)
        # The main thread may compute or wait for something else than the requests.
        timer = threading.Timer(_LEAVE_GRACE, os._exit, (status,))
        timer.daemon = True
        timer.start()

    def _receive(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if kind == frames.PREDICT:
            self._predict(payload)
        elif kind == frames.CREDIT:
            request = self._requests.get(number)
            if request is not None:
                request.credit(frames.read_u32(payload))
        elif kind == frames.CANCEL:
            request = self._requests.get(number)
            if request is not None:
                request.cancel(frames.cancel_reason(payload))
        elif kind == frames.PING:
            self._link.send(frames.header(0, frames.PONG, 0, number))
        elif kind == frames.SEQUENCE_END:
            sequence = str(frames.read_map(payload)["sequence"])
            self._send_work(lambda: self._end_sequence(sequence))
        elif kind == frames.LOAD:
            load = frames.read_map(payload)
            self._max_bytes = load["maxResponseBytes"]
            self._send_work(lambda: setattr(self, "_load", load))
        elif kind == frames.UNLOAD:
            self._send_work(None)
        elif kind != frames.INPUT:
            raise frames.ProtocolError(f"a frame has the unknown type {kind}")

    def _send_work(self, work: Work | None) -> None:
        with self._post_lock:
            self._post(work)

    def _predict(self, payload: bytes) -> None:
        """Open the requests, so that credit and cancels find them, and call the handler once for each method."""
        fields, at = frames.read_predict(payload)
        groups: dict[str, Batch] = {}
        for each in fields:
            request = Request(each, self._link, self._rank, self._max_bytes)
            self._requests[request.id] = request
            size = sum(part["size"] for part in each["parts"])
            batch = groups.get(request.method)
            if batch is None:
                batch = groups[request.method] = Batch()
            batch.add(request, each["parts"], payload[at : at + size] if len(fields) > 1 else payload[at:])
            at += size
        for batch in groups.values():
            self._post_batch(batch)

    def _post_batch(self, batch: Batch) -> None:
        self._send_work(lambda: self._call(batch))


def _call_soon(loop: asyncio.AbstractEventLoop, take: Callable[[Work | None], None], work: Work | None) -> None:
    try:
        loop.call_soon_threadsafe(take, work)
    except RuntimeError:
        pass  # the loop has ended
