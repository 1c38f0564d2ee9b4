"""A stream of a hundred items of a hundred bytes."""

import numpy
import triton_python_backend_utils as pb_utils

ITEMS = [numpy.array([[str(number).ljust(99) + "\n"]], dtype=object) for number in range(1, 101)]


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for item in ITEMS:
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("out", item)]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
