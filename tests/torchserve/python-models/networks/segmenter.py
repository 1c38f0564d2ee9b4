"""The smallest segmenter: every pixel has the same class."""

import torch


class ImageSegmenter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.classes = torch.nn.Parameter(torch.arange(21.0))

    def forward(self, images):
        count, _, height, width = images.shape
        return {"out": self.classes.view(1, 21, 1, 1).expand(count, 21, height, width)}
