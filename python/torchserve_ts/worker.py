"""The worker: one model, one connection.

The main thread loads and calls the handler. A reader thread takes frames: it answers pings, and passes credit and
cancels to the requests at once, also while the handler computes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Coroutine
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Callable

from torchserve_ts import frames
from torchserve_ts.batch import Batch
from torchserve_ts.calls import Loaded, load_model, result_of
from torchserve_ts.context import Context
from torchserve_ts.errors import describe, load_error
from torchserve_ts.link import Link
from torchserve_ts.request import Request

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

_LEAVE_GRACE = 2.5
"""Seconds that running requests have to end when the server is gone."""
_CLOSE_GRACE = 2.0
"""Seconds for the server to read what was sent, and to close its side."""


Work = Callable[[Loaded], None]


class Worker:
    """Serves one connection until the server closes it or unloads the model."""

    def __init__(self, link: Link, rank: int, packages: str | None) -> None:
        self._link = link
        self._packages = packages
        self._rank = rank
        self._requests: dict[int, Request] = {}
        self._load: dict[str, Any] = {}
        self._begin: SimpleQueue[bool] = SimpleQueue()
        """True: load the model. False: end without it."""
        self._work: SimpleQueue[Work | None] = SimpleQueue()
        self._post: Callable[[Work | None], None] = self._work.put
        self._post_lock = threading.Lock()
        self._gone = threading.Event()
        """The server has closed the connection."""
        self._threads: ThreadPoolExecutor | None = None
        self._tasks: set[asyncio.Task[None]] = set()

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
        self._begin.put(False)
        self._post(None)

    def _serve(self) -> int:
        """Load the model, then run what the reader posts, until it posts None."""
        if not self._begin.get():
            return 0
        try:
            model = load_model(self._load, self._rank, self._link, self._packages)
            if not model.handler.is_async:
                model.calls.first(model.context)
        except Exception as error:
            return self._report_load_failure(error)
        if model.handler.is_async:
            import asyncio

            return asyncio.run(self._serve_async(model))
        config = self._load["modelConfig"]
        if config.get("asyncCommunication") is True:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(config.get("maxConcurrency", 100), "torchserve-ts-call")
        self._report_loaded(model)
        while True:
            work = self._work.get()
            if work is None:
                break
            work(model)
        if self._threads is not None:
            self._threads.shutdown(wait=True)
        _run_now(self._run_hook(model, "shutdown"))
        return 0

    async def _serve_async(self, model: Loaded) -> int:
        import asyncio

        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        try:
            await model.calls.first_async(model.context)
        except Exception as error:
            return self._report_load_failure(error)

        def take(work: Work | None) -> None:
            if work is None:
                ended.set()
            else:
                work(model)

        def post(work: Work | None) -> None:
            try:
                loop.call_soon_threadsafe(take, work)
            except RuntimeError:
                pass  # the loop has ended

        with self._post_lock:
            self._post = post
        while not self._work.empty():
            take(self._work.get())
        self._report_loaded(model)
        await ended.wait()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._run_hook(model, "shutdown")
        return 0

    def _report_loaded(self, model: Loaded) -> None:
        model.sender.flush()
        self._link.send(frames.map_frame(frames.LOADED, {"methods": ["handle"]}))

    def _report_load_failure(self, error: Exception) -> int:
        self._link.send(frames.map_frame(frames.LOADED, {"error": load_error(error)}))
        print(f"The handler did not load: {describe(error)}", file=sys.stderr, flush=True)
        return 1

    def _call(self, batch: Batch, model: Loaded) -> None:
        """Begin a batch, in the thread or the event loop of the handler."""
        if model.handler.is_async:
            self._add_task(self._run_async(batch, model, model.context._copy_for(batch.requests)))
        elif self._threads is not None:
            self._threads.submit(self._run_in_thread, batch, model, model.context._copy_for(batch.requests))
        else:
            model.context._bind(batch.requests)
            self._run(batch, model, model.context)

    def _run(self, batch: Batch, model: Loaded, context: Context) -> None:
        model.calls.run(batch, context)
        self._forget(batch, model)

    def _run_in_thread(self, batch: Batch, model: Loaded, context: Context) -> None:
        try:
            self._run(batch, model, context)
        except BaseException as error:
            # A thread pool would keep it, and the request would never end.
            _end_process(error)

    async def _run_async(self, batch: Batch, model: Loaded, context: Context) -> None:
        await model.calls.run_async(batch, context)
        self._forget(batch, model)

    def _add_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the others. An exception that escapes it ends the process."""
        import asyncio

        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            if error is not None:
                _end_process(error)

        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(done)

    def _forget(self, batch: Batch, model: Loaded) -> None:
        for request in batch.requests:
            self._requests.pop(request.id, None)
        model.sender.flush(at_once=not self._requests)

    def _end_sequence(self, sequence: str, model: Loaded) -> None:
        async def end() -> None:
            await self._run_hook(model, "on_sequence_end", sequence, model.context)
            model.context.cache.pop(sequence, None)

        if model.handler.is_async:
            self._add_task(end())
        else:
            _run_now(end())

    async def _run_hook(self, model: Loaded, name: str, *args: object) -> None:
        """Call an optional function of the handler. What it raises is logged."""
        hook = getattr(model.handler, name)
        try:
            if hook is not None:
                await result_of(hook(*args))
        except Exception as error:
            self._link.log("error", f"The handler raised in {name}: {describe(error)}")
        model.sender.flush()

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
            self._send_work(partial(self._end_sequence, str(frames.read_map(payload)["sequence"])))
        elif kind == frames.LOAD:
            self._load = frames.read_map(payload)
            self._begin.put(True)
        elif kind == frames.UNLOAD:
            self._send_work(None)
        elif kind != frames.INPUT:
            raise frames.ProtocolError(f"a frame has the unknown type {kind}")

    def _send_work(self, work: Work | None) -> None:
        with self._post_lock:
            if work is None:
                self.finish()
            else:
                self._post(work)

    def _predict(self, payload: bytes) -> None:
        """Open the requests, so that credit and cancels find them, and call the handler once for each method."""
        fields, at = frames.read_predict(payload)
        groups: dict[str, Batch] = {}
        for each in fields:
            request = Request(each, self._link, self._rank, self._load["maxResponseBytes"])
            self._requests[request.id] = request
            end = at + sum(part["size"] for part in each["parts"])
            groups.setdefault(request.method, Batch()).add(request, each["parts"], memoryview(payload)[at:end])
            at = end
        for batch in groups.values():
            self._send_work(partial(self._call, batch))


def _run_now(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that does not wait, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()


def _end_process(error: BaseException) -> None:
    print(f"The handler ended the worker: {describe(error)}", file=sys.stderr, flush=True)
    os._exit(1)
