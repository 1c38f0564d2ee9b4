"""Says its prompt word by word, as any handler of TorchServe that streams. The word `fail` raises, `refuse` is an error of the handler's own."""

import time

from ts.handler_utils.utils import send_intermediate_predict_response
from ts.utils.util import PredictionException


class Words:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        prompt = data[0].get("data") or data[0].get("body")
        words = (prompt if isinstance(prompt, str) else bytes(prompt).decode()).split(" ")
        for word in words[:-1]:
            send_intermediate_predict_response([said(word) + " "], context.request_ids, "Intermediate", 200, context)
            time.sleep(0.02)
        return [said(words[-1])]


def said(word):
    if word == "fail":
        raise ValueError("as asked")
    if word == "refuse":
        raise PredictionException("I do not say that", 422)
    return word
