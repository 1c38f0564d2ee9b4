"""The timed stream for asyncCommunication: many requests wait in one worker."""

import asyncio
import json
import time

from ts.handler_utils.utils import send_intermediate_predict_response


def item(number, start):
    return f"{number} {(time.perf_counter() - start) * 1000:.3f}".ljust(99) + "\n"


class Idle:
    def initialize(self, context):
        pass

    async def handle(self, data, context):
        start = time.perf_counter()
        request = json.loads(bytes(data[0].get("body") or data[0].get("data")))
        for number in range(1, request["n"]):
            send_intermediate_predict_response([item(number, start)], context.request_ids, "Intermediate", 200, context)
            await asyncio.sleep(request["gap"] / 1000)
        return [item(request["n"], start)]
