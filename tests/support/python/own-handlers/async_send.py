"""Streams by awaited sends; several requests run side by side."""

import asyncio

from torchserve_ts import RequestCancelled, send_intermediate_predict_response_async


async def handle(data, context):
    if data is None:
        return
    wanted = data[0]["body"]
    context.metrics.add_counter("Sends", 1)
    events = open(wanted["events"], "a", buffering=1)
    try:
        for count in range(wanted["n"] - 1):
            events.write(f"item {count}\n")
            item = f"{count}".ljust(wanted.get("size", 0))
            await send_intermediate_predict_response_async([item], context.request_ids, "", 200, context)
            await asyncio.sleep(wanted.get("delay", 0))
        return [f"{wanted['n'] - 1}"]
    except (RequestCancelled, asyncio.CancelledError) as error:
        events.write(f"ended by {type(error).__name__}\n")
        raise
