"""Streams by calls of send_intermediate_predict_response, which block while the client does not read."""

import time

from torchserve_ts import RequestCancelled, send_intermediate_predict_response


def handle(data, context):
    if data is None:
        return
    wanted = data[0]["body"]
    events = open(wanted["events"], "a", buffering=1)
    try:
        for count in range(wanted["n"] - 1):
            events.write(f"item {count}\n")
            item = f"{count}".ljust(wanted.get("size", 0))
            send_intermediate_predict_response([item], context.request_ids, "", 200, context)
            time.sleep(wanted.get("delay", 0))
        return [f"{wanted['n'] - 1}"]
    except RequestCancelled as error:
        events.write(f"ended by RequestCancelled {error.reason}\n")
        raise
