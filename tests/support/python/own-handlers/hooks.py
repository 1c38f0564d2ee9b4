"""Classes with every optional function. They write to the file that their configuration names."""

import asyncio

import torchserve_ts  # noqa: F401


class Plain:
    def initialize(self, context):
        self.events = open(context.model_yaml_config["events"], "a", buffering=1)
        self.events.write(f"rank {context.rank} of {context.world_size}\n")

    def handle(self, data, context):
        if context.rank == 0 and context.get_sequence_id(0) is not None:
            context.cache[context.get_sequence_id(0)] = "kept"
        return [f"rank {context.rank}" for _ in data]

    def describe(self, context):
        return {"model": context.model_name}

    def on_sequence_end(self, sequence, context):
        self.events.write(f"end of {sequence}, {context.cache[sequence]}\n")
        context.metrics.add_counter("Ended", 1)
        raise KeyError(sequence)

    def shutdown(self):
        self.events.write("shut down\n")


class Async(Plain):
    async def handle(self, data, context):
        return super().handle(data, context)

    async def describe(self, context):
        return super().describe(context)

    async def on_sequence_end(self, sequence, context):
        await asyncio.sleep(0)
        super().on_sequence_end(sequence, context)

    async def shutdown(self):
        await asyncio.sleep(0)
        super().shutdown()
