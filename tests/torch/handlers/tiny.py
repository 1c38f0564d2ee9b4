"""What a user of BaseHandler writes."""

import json

import torch
from ts.torch_handler.base_handler import BaseHandler


class TinyHandler(BaseHandler):
    def preprocess(self, data):
        rows = [row.get("body", row.get("data")) for row in data]
        rows = [json.loads(bytes(row)) if isinstance(row, (bytes, bytearray)) else row for row in rows]
        return torch.tensor(rows, dtype=torch.float32)

    def postprocess(self, data):
        return data.tolist()
