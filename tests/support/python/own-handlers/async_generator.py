"""Streams as an async generator."""

import asyncio

import torchserve_ts  # noqa: F401


async def handle(data, context):
    if data is None:
        return
    wanted = data[0]["body"]
    events = open(wanted["events"], "a", buffering=1)
    try:
        for count in range(wanted["n"]):
            events.write(f"item {count}\n")
            yield [f"{count}".ljust(wanted.get("size", 0))]
            await asyncio.sleep(wanted.get("delay", 0))
    except (GeneratorExit, asyncio.CancelledError) as error:
        events.write(f"ended by {type(error).__name__}\n")
        raise
