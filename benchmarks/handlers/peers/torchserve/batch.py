"""Blocks for as many milliseconds as the first request says; each answer is the size of its batch."""

import json
import time


def handle(data, context):
    if data is None:
        return None
    request = json.loads(bytes(data[0].get("body") or data[0].get("data")))
    time.sleep(request.get("ms", 0) / 1000)
    return [f"batch of {len(data)}"] * len(data)
