"""Items `gap` milliseconds apart; each says how many milliseconds the handler had run when it made it."""

import asyncio
import json
import time

import numpy
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        await asyncio.gather(*(self.stream(request) for request in requests))
        return None

    async def stream(self, request):
        start = time.perf_counter()
        sender = request.get_response_sender()
        asked = json.loads(pb_utils.get_input_tensor_by_name(request, "text").as_numpy().flatten()[0])
        for number in range(1, asked["n"] + 1):
            if number > 1:
                await asyncio.sleep(asked["gap"] / 1000)
            milliseconds = (time.perf_counter() - start) * 1000
            item = numpy.array([[f"{number} {milliseconds:.3f}".ljust(99) + "\n"]], dtype=object)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("out", item)]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
