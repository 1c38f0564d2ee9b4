"""Answers with a tensor, which TorchServe's worker saves."""

import torch


def handle(data, context):
    return None if data is None else [torch.arange(3) for _ in data]
