"""Calls of the handler: plain functions and generators, coroutines and async generators."""

from __future__ import annotations

import time
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, NamedTuple

from torchserve_ts.batch import Batch
from torchserve_ts.context import Context
from torchserve_ts.errors import InvalidOutput
from torchserve_ts.link import Link
from torchserve_ts.loader import Handler, add_model_folder, load_handler
from torchserve_ts.metrics import Metrics, MetricSender


class Calls:
    """Calls the handler with batches and sends its answers."""

    def __init__(self, handler: Handler, link: Link, sender: MetricSender, model_name: str, decode: bool):
        self._handler = handler
        self._link = link
        self._sender = sender
        self._dimensions = {"ModelName": model_name, "Level": "Model"}
        self._times = sender.wants("HandlerTime") or sender.wants("PredictionTime")
        self._decode = decode

    def first(self, context: Context) -> None:
        """Initialize the handler. A function is called once without data."""
        handler = self._handler
        if handler.initialize is not None:
            handler.initialize(context)
        elif handler.is_function:
            answer = handler.handle(None, context)
            if isinstance(answer, GeneratorType):
                next(answer, None)
                answer.close()

    async def first_async(self, context: Context) -> None:
        """Do the same for a handler that has coroutines."""
        handler = self._handler
        if handler.initialize is not None:
            await result_of(handler.initialize(context))
        elif handler.is_function:
            answer = handler.handle(None, context)
            if isinstance(answer, AsyncGeneratorType):
                async for _ in answer:
                    break
                await answer.aclose()
            elif isinstance(answer, GeneratorType):
                next(answer, None)
                answer.close()
            else:
                await result_of(answer)

    def run(self, batch: Batch, context: Context) -> None:
        """Call a handler without coroutines and send its answer. Never raises, except to end the process."""
        begun = time.perf_counter()
        try:
            if batch.gone is not None:
                raise batch.gone
            answer = self._call(batch, context)
            if isinstance(answer, GeneratorType):
                answer = _drive(answer, batch)
            elif isinstance(answer, (CoroutineType, AsyncGeneratorType)):
                if isinstance(answer, CoroutineType):
                    answer.close()
                raise InvalidOutput(
                    "Invalid model predict output",
                    "The handler returned a coroutine: define handle itself with async def",
                )
            batch.finish(answer)
            self._record(begun, context)
        except Exception as error:
            self._fail(batch, error)

    async def run_async(self, batch: Batch, context: Context) -> None:
        """Call a handler with coroutines. When all requests are cancelled, so is the current task."""
        import asyncio

        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        begun = time.perf_counter()
        running = True

        def cancel() -> None:
            if running and task is not None:
                task.cancel()

        try:
            if batch.gone is not None:
                raise batch.gone
            context.on_cancel(lambda: loop.call_soon_threadsafe(cancel))
            answer = self._call(batch, context)
            if isinstance(answer, AsyncGeneratorType):
                generator = answer
                try:
                    answer = await _drive_async(generator, batch)
                finally:
                    # Its own cleanup is not to be cancelled.
                    running = False
                    await generator.aclose()
            elif isinstance(answer, GeneratorType):
                answer = _drive(answer, batch)
            else:
                answer = await result_of(answer)
            running = False
            batch.finish(answer)
            self._record(begun, context)
        except asyncio.CancelledError as error:
            running = False
            self._fail(batch, batch.gone or RuntimeError(f"The handler was cancelled: {error}"))
        except Exception as error:
            running = False
            self._fail(batch, error)

    def _call(self, batch: Batch, context: Context) -> Any:
        if batch.method == "describe":
            return self._describe(batch, context)
        return self._handler.handle(batch.inputs(self._decode, self._link), context)

    def _describe(self, batch: Batch, context: Context) -> Any:
        for index in range(len(batch.requests)):
            context.set_response_content_type(index, "application/json")
        describe = self._handler.describe
        described = describe(context) if describe is not None else {}
        if isinstance(described, CoroutineType):
            return _as_list(described, len(batch.requests))
        return [described] * len(batch.requests)

    def _record(self, begun: float, context: Context) -> None:
        if not self._times:
            return
        value = round((time.perf_counter() - begun) * 1000, 2)
        ids = ",".join(context.request_ids.values())
        for name in ("HandlerTime", "PredictionTime"):
            if self._sender.wants(name):
                self._sender.add(name, "gauge", "Milliseconds", self._dimensions, value, ids)

    def _fail(self, batch: Batch, error: Exception) -> None:
        if batch.requests[0].rank != 0 and batch.gone is None:
            from torchserve_ts.errors import describe

            self._link.log("error", f"The handler raised: {describe(error)}")
        batch.fail(error)


class Loaded(NamedTuple):
    """A model whose handler was imported."""

    handler: Handler
    calls: Calls
    context: Context
    sender: MetricSender


def load_model(load: dict[str, Any], rank: int, link: Link, packages: str | None) -> Loaded:
    """Import the handler. ``load`` is the map of the LOAD frame. Raises what the handler's module raises."""
    name = (load["manifest"].get("model") or {}).get("handler") or ""
    sender = MetricSender(link, load.get("metrics"))
    context = Context(load, rank, link, Metrics(sender, load["modelName"], link))
    add_model_folder(load["modelDir"], name, packages)
    handler = load_handler(name)
    calls = Calls(handler, link, sender, load["modelName"], bool(load["decodeInput"]))
    return Loaded(handler, calls, context, sender)


def _drive(generator: GeneratorType[Any, Any, Any], batch: Batch) -> Any:
    """Send what a generator yields, each item when the clients have room; return its last items."""
    try:
        while True:
            try:
                items = next(generator)
            except StopIteration as end:
                return [None] * len(batch.requests) if end.value is None else end.value
            batch.push(items)
            for request in batch.requests:
                request.wait_for_room()
            if batch.gone is not None:
                raise batch.gone
    finally:
        generator.close()


async def _drive_async(generator: AsyncGeneratorType[Any, Any], batch: Batch) -> Any:
    from torchserve_ts.intermediate import room

    async for items in generator:
        for request in batch.requests:
            await room(request)
        batch.push(items)
        for request in batch.requests:
            await room(request)
        if batch.gone is not None:
            raise batch.gone
    return [None] * len(batch.requests)


async def result_of(answer: Any) -> Any:
    """Wait for what a function has returned, if it is awaitable."""
    return await answer if hasattr(answer, "__await__") else answer


async def _as_list(described: Any, count: int) -> list[Any]:
    return [await described] * count
