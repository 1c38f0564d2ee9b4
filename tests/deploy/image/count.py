"""Sends `n` items of `size` bytes, one every `delay` milliseconds: as a stream, or all in one."""

import time

from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    return [answer(row["body"], context) for row in data]


def answer(body, context):
    item = "x" * body.get("size", 1)
    if not body["stream"]:
        return item * body["n"]
    for _ in range(body["n"] - 1):
        send_intermediate_predict_response([item], context.request_ids, "more", 200, context)
        time.sleep(body["delay"] / 1000)
    return item
