"""Continuous batching: each request gets one word more in every step, until it has as many as it asked for."""

import time


class Steps:
    def initialize(self, context):
        self.left = {}

    def handle(self, data, context):
        ids = context.request_ids.values()
        for request, row in zip(ids, data):
            if request not in self.left:
                body = row.get("body", row.get("data"))
                self.left[request] = int(body if isinstance(body, (int, str)) else bytes(body))
        time.sleep(0.03)
        results = [self.step(request) for request in ids]
        context.stopping_criteria = [self.stopper(request) for request in ids]
        return results

    def step(self, request):
        self.left[request] -= 1
        return "left %d " % self.left[request]

    def stopper(self, request):
        def has_ended(_result):
            ended = self.left[request] <= 0
            if ended:
                del self.left[request]
            return ended

        return has_ended
