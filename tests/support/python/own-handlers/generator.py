"""Streams as a generator of a class."""

import time

import torchserve_ts  # noqa: F401


class Handler:
    def initialize(self, context):
        self.model_dir = context.system_properties["model_dir"]

    def handle(self, data, context):
        wanted = data[0]["body"]
        events = open(wanted["events"], "a", buffering=1)
        try:
            for count in range(wanted["n"] - 1):
                events.write(f"item {count}\n")
                yield [f"{count}".ljust(wanted.get("size", 0))]
                time.sleep(wanted.get("delay", 0))
            return [f"{wanted['n'] - 1}"]
        except GeneratorExit:
            events.write("ended by GeneratorExit\n")
            raise
