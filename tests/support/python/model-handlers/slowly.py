"""A coroutine: many requests at once, each as slow as it wants to be."""

import asyncio
import json

from ts.handler_utils.utils import send_intermediate_predict_response


class Slowly:
    def initialize(self, context):
        self.running = 0

    async def handle(self, data, context):
        wish = data[0].get("body", data[0].get("data"))
        wish = wish if isinstance(wish, dict) else json.loads(bytes(wish))
        self.running += 1
        try:
            if wish.get("stream"):
                send_intermediate_predict_response(
                    ["first "], context.request_ids, "Intermediate Prediction success", 200, context
                )
            await asyncio.sleep(wish["seconds"])
            if wish.get("raise"):
                raise ValueError("as wished")
            return [{"waited": wish["seconds"]}]
        finally:
            self.running -= 1
