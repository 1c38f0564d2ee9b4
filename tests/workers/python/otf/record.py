"""Writes recorded-replies.json: frames as TorchServe's own codec makes them. Run it with a Python that has torchserve."""

import base64
import json
import sys

from ts.context import Context, RequestProcessor
from ts.protocol.otf_message_handler import create_load_model_response, create_predict_response
import ts


def context_for(count):
    context = Context("m", "/m", {}, count, None, ts.__version__)
    context.request_processor = [RequestProcessor({}) for _ in range(count)]
    return context


def whole():
    context = context_for(2)
    context.set_response_content_type(0, "text/plain")
    context.set_response_status(201, "Made", 0)
    context.set_response_header(1, "X-Umlaut", "ä")
    return create_predict_response(["grün", {"a": [1, 2]}], {0: "first", 1: "second"}, "Prediction success", 200, context)


def stream():
    context = context_for(1)
    ids = {0: "0b7e6a52-4a3c-4f35-9d52-7f8a1f0f4d11"}
    frames = [create_predict_response([item], ids, "Intermediate", 200, context, True) for item in ("one", b"", "three")]
    return b"".join(frames + [create_predict_response(["last"], ids, "Prediction success", 200, context)])


def steps():
    context = context_for(3)
    context.stopping_criteria = [lambda _: False, lambda _: True, lambda _: None]
    return create_predict_response(["a", "b", "c"], {0: "r0", 1: "r1", 2: "r2"}, "Prediction success", 200, context)


frames = {
    "load": create_load_model_response(200, "loaded model m"),
    "loadFailed": create_load_model_response(507, "System out of memory"),
    "whole": whole(),
    "stream": stream(),
    "steps": steps(),
    "failed": create_predict_response(None, {0: "x", 1: "y"}, "Prediction failed", 503),
    "unsupported": create_predict_response([object()], {0: "x"}, "Prediction success", 200, context_for(1)),
}
json.dump({name: base64.b64encode(bytes(frame)).decode() for name, frame in frames.items()}, sys.stdout, indent=2)
print()
