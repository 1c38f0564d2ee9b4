"""Adds one to every row that an envelope has unwrapped."""


class Rows:
    def initialize(self, context):
        pass

    def handle(self, data, context):
        return [row + 1 for row in data]
