"""Each rank multiplies by its number; the ranks add up what they have, and say who they are. A number below 0 ends rank 1."""

import os
import time

import torch
import torch.distributed as dist


class Summed:
    def initialize(self, context):
        dist.init_process_group("gloo")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def handle(self, data, context):
        values = [row.get("body", row.get("data")) for row in data]
        values = [float(value if isinstance(value, (int, str)) else bytes(value)) for value in values]
        if values[0] < 0:
            if self.rank == 1:
                os._exit(3)
            time.sleep(60)
        total = torch.tensor(values) * (self.rank + 1)
        dist.all_reduce(total)
        return [{"rank": self.rank, "ranks": self.size, "sum": value} for value in total.tolist()]
