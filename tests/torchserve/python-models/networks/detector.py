"""The smallest object detector: sees one object everywhere."""

import torch


class ObjectDetector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.box = torch.nn.Parameter(torch.tensor([[0.0, 0.0, 10.0, 10.0]]))

    def forward(self, images):
        found = {"boxes": self.box, "labels": torch.tensor([1]), "scores": torch.tensor([0.9])}
        return [found for _ in images]
