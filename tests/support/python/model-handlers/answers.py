"""A handler that is a class: answers as its input wants it to."""

import json

from ts.utils.util import PredictionException


class Answers:
    def initialize(self, context):
        self.model = context.manifest["model"]["modelName"]
        self.greeting = context.model_yaml_config["handler"]["greeting"]

    def handle(self, data, context):
        if context.get_request_header(0, "describe") == "True":
            return [{"greeting": self.greeting, "for": self.model}]
        if context.get_request_header(0, "explain") == "True":
            return [{"explained": len(data)}]
        wishes = [read(row.get("body", row.get("data"))) for row in data]
        wish = wishes[0]["wish"]
        if wish == "raise":
            raise ValueError("as wished")
        if wish == "memory":
            raise MemoryError()
        if wish == "cuda":
            raise RuntimeError("CUDA out of memory")
        if wish == "reject":
            raise PredictionException("not like this", 422)
        if wish == "text":
            return "no list"
        if wish == "short":
            return []
        if wish == "strange":
            return [{1, 2}]
        return [self.answer(wish, context, index) for index, wish in enumerate(wishes)]

    def answer(self, wish, context, index):
        if wish["wish"] == "head":
            context.set_response_content_type(index, "text/x-wish")
            context.set_response_header(index, "x-wish", "granted")
            context.set_response_status(code=202, phrase="Accepted here", idx=index)
        if wish["wish"] == "bytes":
            return b"\x00\x01\xff"
        if wish["wish"] == "many":
            return "x" * 300000
        return self.greeting


def read(body):
    """What comes over gRPC is bytes."""
    return json.loads(bytes(body)) if isinstance(body, (bytes, bytearray)) else body
