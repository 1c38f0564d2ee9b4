"""Muon for the matrices of the blocks, Adam for the embedding and the norms.

Muon replaces a matrix's momentum by the nearest orthogonal matrix (a few Newton-Schulz steps), which needs clearly
fewer steps than Adam for the same loss. https://kellerjordan.github.io/posts/muon/
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from model import Params

MOMENTUM = 0.95
ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON = 0.9, 0.98, 1e-8
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


class State(NamedTuple):
    step: jax.Array
    first: Params
    second: Params


class Rates(NamedTuple):
    """Learning rates at their highest, and the weight decay, which is multiplied by Muon's rate."""

    muon: float
    adam: float
    decay: float


def uses_muon(name: str) -> bool:
    return name.startswith("blk.") and "norm" not in name


def initial_state(params: Params) -> State:
    first = jax.tree.map(jnp.zeros_like, params)
    second = {name: jnp.zeros_like(value) for name, value in params.items() if not uses_muon(name)}
    return State(jnp.zeros((), jnp.int32), first, second)


def orthogonal(matrices: jax.Array) -> jax.Array:
    """The orthogonal matrix next to each of `matrices` [n, rows, columns], roughly."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(0, 2, 1) if tall else matrices
    x = x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.transpose(0, 2, 1)
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.transpose(0, 2, 1) if tall else x


def update(params: Params, gradients: Params, state: State, rates: Rates, scale: jax.Array) -> tuple[Params, State]:
    """One step with every rate multiplied by `scale` (the schedule)."""
    step = state.step + 1
    first, second, moved = {}, {}, {}
    for name, value in params.items():
        gradient = gradients[name]
        if uses_muon(name):
            momentum = MOMENTUM * state.first[name] + (1 - MOMENTUM) * gradient
            nesterov = MOMENTUM * momentum + (1 - MOMENTUM) * gradient
            rows, columns = value.shape
            rate = rates.muon * scale
            direction = orthogonal(nesterov[None])[0] * max(1.0, rows / columns) ** 0.5
            first[name] = momentum
            moved[name] = value * (1 - rate * rates.decay) - rate * direction
        else:
            rate = rates.adam * scale
            first[name] = ADAM_BETA1 * state.first[name] + (1 - ADAM_BETA1) * gradient
            second[name] = ADAM_BETA2 * state.second[name] + (1 - ADAM_BETA2) * gradient**2
            mean = first[name] / (1 - ADAM_BETA1**step)
            spread = jnp.sqrt(second[name] / (1 - ADAM_BETA2**step))
            moved[name] = value - rate * mean / (spread + ADAM_EPSILON)
    return moved, State(step, first, second)
