"""For asyncCommunication: requests run side by side."""

import asyncio
import json
import os
import sys

from ts.handler_utils.utils import send_intermediate_predict_response
from ts.utils.util import PredictionException

running = 0
most = 0


class Coroutine:
    def initialize(self, context):
        pass

    async def handle(self, data, context):
        global running, most
        running += 1
        most = max(most, running)
        try:
            return [await self.one(row.get("body") or row.get("data") or {}, context) for row in data]
        finally:
            running -= 1

    async def one(self, body, context):
        body = body if isinstance(body, dict) else json.loads(body)
        op = body.get("op")
        for k in range(body.get("n", 0)):
            await asyncio.sleep(body.get("ms", 0) / 1000)
            item = f"{body['name']}{k} " + "x" * body.get("size", 0)
            send_intermediate_predict_response([item], context.request_ids, "Intermediate", 200, context)
        while most < body.get("together", 0):
            await asyncio.sleep(0.005)
        await asyncio.sleep(body.get("wait", 0) / 1000)
        if op == "throw":
            raise ValueError("no reason")
        if op == "reject":
            raise PredictionException("not this one", 418)
        if op == "exit":
            sys.exit(5)
        if op == "abort":
            os._exit(6)
        return {"name": body.get("name"), "most": most, "batch": len(context.request_ids), "pid": os.getpid()}
