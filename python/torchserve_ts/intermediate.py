"""Intermediate responses: the items of a stream before the last one."""

from __future__ import annotations

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
    for request in _push(ret, req_id_map, message, code, context):
        request.wait_for_room()
    _raise_if_gone(context)


async def send_intermediate_predict_response_async(
    ret: list[Any], req_id_map: dict[int, str], message: str, code: int, context: Context
) -> None:
    """Do the same without blocking the event loop."""
    for request in _push(ret, req_id_map, message, code, context):
        await room(request)
    _raise_if_gone(context)


async def room(request: Request) -> None:
    """Wait until the client of the request has room."""
    import asyncio

    if request.has_room:
        return
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    request.when_room(lambda: loop.call_soon_threadsafe(done.set))
    await done.wait()


def _push(ret: list[Any], req_id_map: dict[int, str], message: str, code: int, context: Context) -> list[Request]:
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
        if code == 200:
            push_item(request, ret[index])
        elif 200 <= code < 300:
            if request.status is None:
                request.status = (code, None)
            push_item(request, ret[index])
        else:
            request.drop(PredictionException(message, code))
        addressed.append(request)
    return addressed


def _raise_if_gone(context: Context) -> None:
    requests = context.batch_requests()
    gone = [request.gone for request in requests]
    if gone and all(gone) and gone[0] is not None:
        raise gone[0]
