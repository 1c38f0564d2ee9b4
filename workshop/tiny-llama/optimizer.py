"""Muon for the matrices of the blocks, Adam for the embedding and the norms.

Muon replaces a matrix's momentum by the orthogonal matrix near it (a few Newton-Schulz steps), which takes clearly
fewer steps than Adam for the same loss. https://kellerjordan.github.io/posts/muon/
"""

from collections import defaultdict

import torch
from torch import Tensor

from model import Params

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


def orthogonal(matrices: Tensor) -> Tensor:
    """Roughly the orthogonal matrix near each of `matrices` [n, rows, columns]."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


class Muon:
    """Steps many matrices at once, those of one size together. Decay shrinks the weights by rate * decay a step."""

    def __init__(self, matrices: list[Tensor], decay: float, momentum: float = 0.95) -> None:
        self.groups: dict[tuple[int, ...], list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            self.groups[tuple(matrix.shape)].append(matrix)
        self.momenta = {size: torch.zeros(len(group), *size) for size, group in self.groups.items()}
        self.decay, self.momentum = decay, momentum

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for size, group in self.groups.items():
            gradients = torch.stack([matrix.grad for matrix in group])
            momentum = self.momenta[size].lerp_(gradients, 1 - self.momentum)
            direction = orthogonal(gradients.lerp(momentum, self.momentum))
            scale = max(1.0, size[0] / size[1]) ** 0.5
            for matrix, move in zip(group, direction):
                matrix.mul_(1 - rate * self.decay).add_(move, alpha=-rate * scale)


class Optimizer:
    """Both together; `step` takes the schedule's factor for their highest rates."""

    def __init__(self, params: Params, muon_rate: float, adam_rate: float, decay: float) -> None:
        by_muon = {name for name, value in params.items() if name.startswith("blk.") and value.dim() == 2}
        self.params = params
        self.muon_rate, self.adam_rate = muon_rate, adam_rate
        self.muon = Muon([params[name] for name in params if name in by_muon], decay)
        self.adam = torch.optim.Adam([params[name] for name in params if name not in by_muon], betas=(0.9, 0.98))

    def step(self, factor: float) -> None:
        self.muon.step(self.muon_rate * factor)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * factor
        self.adam.step()
        for value in self.params.values():
            value.grad = None

    def state(self) -> dict:
        return {"muon": self.muon.momenta, "adam": self.adam.state_dict()}

    def restore(self, state: dict) -> None:
        self.muon.momenta = state["muon"]
        self.adam.load_state_dict(state["adam"])
