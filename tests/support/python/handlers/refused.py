"""Does what atLoad of its model-config.yaml says, and for each request what the body says."""

import os


def attempt(what, path):
    if what == "read":
        with open(path, encoding="utf-8") as file:
            file.read()
    if what == "variable":
        os.environ["PLANTED_SECRET"]
    if what == "throw":
        raise ValueError("of its own")


class Refused:
    def initialize(self, context):
        self.config = context.model_yaml_config
        attempt(self.config.get("atLoad"), self.config["path"])

    def handle(self, data, context):
        for row in data:
            what = row.get("body") or row.get("data")
            if isinstance(what, (bytes, bytearray)):
                what = what.decode()
            attempt(what, self.config["path"])
        return ["done"] * len(data)
