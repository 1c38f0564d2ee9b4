"""Intermediate responses: the items of a stream before the last one."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from torchserve_ts.batch import push_item
from torchserve_ts.errors import PredictionException
from torchserve_ts.request import Request

if TYPE_CHECKING:
    from torchserve_ts.context import Context


def send_intermediate_predict_response(
    ret: list[Any], req_id_map: dict[int, str], message: str, code: int, context: Context
) -> None:
    """Send one item at once to each request of ``req_id_map``, and wait until their clients have room.

    ``ret[i]`` goes to the request ``req_id_map[i]``; pass ``context.request_ids``. An exception as an item fails
    that request only; None sends nothing, but the request's time limits begin anew. With a ``code`` that is an
    error, the requests fail with this status and ``message``. In a coroutine, await
    :func:`send_intermediate_predict_response_async`, so that other requests continue.

    Raises RequestCancelled when every request of the batch is cancelled.
    """
    requests = _addressed(ret, req_id_map, context)
    for index, request in requests:
        _push(request, ret, index, message, code)
    for _, request in requests:
        request.wait_for_room()
    _raise_if_gone(context)


async def send_intermediate_predict_response_async(
    ret: list[Any], req_id_map: dict[int, str], message: str, code: int, context: Context
) -> None:
    """Do the same without blocking the event loop."""
    requests = _addressed(ret, req_id_map, context)
    for index, request in requests:
        # Without room, the push would block the event loop.
        await room(request)
        _push(request, ret, index, message, code)
    for _, request in requests:
        await room(request)
    _raise_if_gone(context)


async def room(request: Request) -> None:
    """Wait until the client of the request has room."""
    import asyncio

    loop = asyncio.get_running_loop()
    # Another send of the request may take the room first.
    while not request.has_room:
        done = asyncio.Event()
        request.when_room(partial(loop.call_soon_threadsafe, done.set))
        await done.wait()


def _addressed(ret: list[Any], req_id_map: dict[int, str], context: Context) -> list[tuple[int, Request]]:
    if not isinstance(ret, (list, tuple)):
        raise TypeError("ret must be a list with one item per request")
    known = {request.request_id: request for request in context.batch_requests()}
    addressed = []
    for index, request_id in req_id_map.items():
        request = known.get(request_id)
        if request is None:
            raise ValueError(f'the batch has no request "{request_id}"')
        if request.ended:
            raise ValueError(f"request {request_id} has already ended")
        addressed.append((index, request))
    return addressed


def _push(request: Request, ret: list[Any], index: int, message: str, code: int) -> None:
    if not 200 <= code < 300:
        request.drop(PredictionException(message, code))
        return
    if code != 200 and request.status is None:
        request.status = (code, None)
    push_item(request, ret[index])


def _raise_if_gone(context: Context) -> None:
    requests = context.batch_requests()
    gone = [request.gone for request in requests]
    if gone and all(gone) and gone[0] is not None:
        raise gone[0]
