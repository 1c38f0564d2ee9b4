"""Answers once, with blocking code that looks for its cancellation, in a thread for each request."""

import threading

import torchserve_ts  # noqa: F401


def handle(data, context):
    if data is None:
        return
    wanted = data[0]["body"]
    events = open(wanted["events"], "a", buffering=1)
    left = threading.Event()
    context.on_cancel(left.set)
    if "raise" in wanted:
        context.on_cancel(lambda: wanted["nothing"])
    events.write("item 0\n")
    if wanted["n"] > 1 and left.wait(60) and context.cancelled(0):
        events.write("ended by on_cancel\n")
    return ["done"]
