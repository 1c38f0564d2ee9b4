"""Stands in for the network that names the breed of a dog: asked for pictures that the node before took for a dog."""

import base64

import recorded


class DogBreed:
    def initialize(self, context):
        self.network = recorded.RecordedNetwork()
        self.network.initialize(context)

    def handle(self, data, context):
        pictures = [{"body": base64.b64decode(row["pre_processing"])} for row in data]
        breeds = self.network.handle(pictures, context)
        return [
            breed if text(row["cat_dog_classification"]) == "dog" else "It's a cat!"
            for row, breed in zip(data, breeds)
        ]


def text(value):
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)
