"""Stands in for the network that tells cats from dogs; its picture comes in base64."""

import base64

import recorded


class CatOrDog:
    def initialize(self, context):
        self.network = recorded.RecordedNetwork()
        self.network.initialize(context)

    def handle(self, data, context):
        pictures = [base64.b64decode(row.get("data", row.get("body"))) for row in data]
        return self.network.handle([{"body": picture} for picture in pictures], context)
