"""One class, with TorchServe's conventions for explanations and customized metadata."""


class Classy:
    def __init__(self):
        self.initialized = False

    def initialize(self, context):
        self.initialized = True
        self.name = context.model_name

    def handle(self, data, context):
        if context.get_request_header(0, "describe") == "True":
            return [{"knows": self.name, "initialized": self.initialized}]
        kind = "explanation" if context.get_request_header(0, "explain") == "True" else "prediction"
        return [{"kind": kind, "rows": len(data), "url_path": context.get_request_header(0, "url_path")} for _ in data]
