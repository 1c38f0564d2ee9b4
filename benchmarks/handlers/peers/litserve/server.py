"""The benchmark's models in LitServe: an echo, a stream of a hundred items, and a timed stream. Argument: JSON settings."""

import asyncio
import json
import sys
import time

import litserve

ITEMS = [str(number).ljust(99) + "\n" for number in range(1, 101)]


def item(number, start):
    return f"{number} {(time.perf_counter() - start) * 1000:.3f}".ljust(99) + "\n"


class Echo(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request["input"]

    def predict(self, text):
        return text

    def encode_response(self, output):
        return {"output": output}


class Hundred(litserve.LitAPI):
    def setup(self, device):
        pass

    def decode_request(self, request):
        return request

    def predict(self, request):
        yield from ITEMS

    def encode_response(self, items):
        yield from items


class Timed(Hundred):
    def predict(self, request):
        start = time.perf_counter()
        for number in range(1, request["n"] + 1):
            if number > 1:
                time.sleep(request["gap"] / 1000)
            yield item(number, start)


class Idle(litserve.LitAPI):
    """The timed stream with enable_async: many requests wait in one worker."""

    def setup(self, device):
        pass

    async def decode_request(self, request):
        return request

    async def predict(self, request):
        start = time.perf_counter()
        for number in range(1, request["n"] + 1):
            if number > 1:
                await asyncio.sleep(request["gap"] / 1000)
            yield item(number, start)

    async def encode_response(self, items):
        async for each in items:
            yield each


APIS = {
    "echo": lambda: Echo(api_path="/echo"),
    "hundred": lambda: Hundred(api_path="/hundred", stream=True),
    "timed": lambda: Timed(api_path="/timed", stream=True),
    "idle": lambda: Idle(api_path="/idle", stream=True, enable_async=True),
}

if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    apis = [APIS[name]() for name in settings["models"]]
    server = litserve.LitServer(apis, **settings["server"])
    server.run(**settings["run"])
