"""Items `gap` milliseconds apart; each says how many milliseconds the handler had run when it made it."""

import json
import time

from ts.handler_utils.utils import send_intermediate_predict_response


def item(number, start):
    return f"{number} {(time.perf_counter() - start) * 1000:.3f}".ljust(99) + "\n"


def handle(data, context):
    if data is None:
        return None
    start = time.perf_counter()
    request = json.loads(bytes(data[0].get("body") or data[0].get("data")))
    for number in range(1, request["n"]):
        send_intermediate_predict_response([item(number, start)], context.request_ids, "Intermediate", 200, context)
        time.sleep(request["gap"] / 1000)
    return [item(request["n"], start)]
