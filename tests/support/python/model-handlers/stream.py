"""Sends as many parts as its input says, and an end."""

import time

from ts.handler_utils.utils import send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return None
    wishes = [row.get("body", row.get("data")) for row in data]
    wishes = [int(wish if isinstance(wish, (int, str)) else bytes(wish)) for wish in wishes]
    for number in range(max(wishes)):
        send_intermediate_predict_response(
            ["part %d of %d " % (number, wish) for wish in wishes],
            context.request_ids,
            "Intermediate Prediction success",
            200,
            context,
        )
        time.sleep(0.05)  # so that every part is a chunk, whoever writes it
    return ["end" for _ in wishes]
