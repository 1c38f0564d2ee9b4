"""The benchmark's models for MLServer: an echo, a stream of a hundred items, and a timed stream."""

import asyncio
import json
import time
from typing import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse, ResponseOutput

ITEMS = [str(number).ljust(99) + "\n" for number in range(1, 101)]


class Model(MLModel):
    async def load(self) -> bool:
        return True

    def answer(self, text) -> InferenceResponse:
        output = ResponseOutput(name="text", shape=[1, 1], datatype="BYTES", data=[text])
        return InferenceResponse(model_name=self.name, outputs=[output])


class Echo(Model):
    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        return self.answer(payload.inputs[0].data[0])


class Hundred(Model):
    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for _ in payloads:
            for item in ITEMS:
                yield self.answer(item)


class Timed(Model):
    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            start = time.perf_counter()
            request = json.loads(StringCodec.decode_input(payload.inputs[0])[0])
            for number in range(1, request["n"] + 1):
                if number > 1:
                    await asyncio.sleep(request["gap"] / 1000)
                milliseconds = (time.perf_counter() - start) * 1000
                yield self.answer(f"{number} {milliseconds:.3f}".ljust(99) + "\n")
