"""Answers with the tensor that it got."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("out", values)])
