"""The smallest image classifier: what it thinks of every image stands in its weights."""

import torch


class ImageClassifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(1000))

    def forward(self, images):
        return self.logits.expand(images.shape[0], -1)
