"""The Llama architecture as llama.cpp computes it: RMSNorm, rotary positions, SwiGLU, no biases, tied embeddings.

Parameters carry their GGUF tensor names and the layout that GGUF wants, [outputs, inputs]. The rotation takes
interleaved pairs (0::2, 1::2), llama.cpp's for this architecture, so no row of q and k is moved when writing.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Params = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """The size of a model."""

    vocab_size: int = 2048
    embedding_length: int = 192
    block_count: int = 5
    feed_forward_length: int = 512
    head_count: int = 4
    context_length: int = 256
    rope_freq_base: float = 10000.0
    norm_epsilon: float = 1e-5

    @property
    def head_size(self) -> int:
        return self.embedding_length // self.head_count


def initial_params(shape: Shape) -> Params:
    """Random weights by GGUF tensor name. What a block adds to the residual stream starts at zero."""
    width, hidden = shape.embedding_length, shape.feed_forward_length
    params = {
        "token_embd.weight": 0.04 * torch.randn(shape.vocab_size, width),
        "output_norm.weight": torch.ones(width),
    }
    for index in range(shape.block_count):
        block = f"blk.{index}."
        params[block + "attn_norm.weight"] = torch.ones(width)
        params[block + "ffn_norm.weight"] = torch.ones(width)
        for name in ("attn_q", "attn_k", "attn_v"):
            params[f"{block}{name}.weight"] = width**-0.5 * torch.randn(width, width)
        for name in ("ffn_gate", "ffn_up"):
            params[f"{block}{name}.weight"] = width**-0.5 * torch.randn(hidden, width)
        params[block + "attn_output.weight"] = torch.zeros(width, width)
        params[block + "ffn_down.weight"] = torch.zeros(width, hidden)
    return {name: value.requires_grad_() for name, value in params.items()}


def parameter_count(params: Params) -> int:
    return sum(value.numel() for value in params.values())


def rotation(shape: Shape, length: int) -> Tensor:
    """One unit complex number per position and pair, [1, length, 1, head_size / 2]."""
    pairs = torch.arange(0, shape.head_size, 2) / shape.head_size
    angles = torch.arange(length)[:, None] * shape.rope_freq_base**-pairs
    return torch.polar(torch.ones_like(angles), angles)[None, :, None]


def rotate(x: Tensor, turn: Tensor) -> Tensor:
    """Turn the interleaved pairs of x [batch, length, heads, head_size]."""
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * turn).flatten(-2)


def attention(x: Tensor, params: Params, block: str, turn: Tensor, shape: Shape) -> Tensor:
    def heads(name: str) -> Tensor:
        projected = F.linear(x, params[f"{block}{name}.weight"])
        return projected.unflatten(-1, (shape.head_count, shape.head_size))

    query = rotate(heads("attn_q"), turn).transpose(1, 2)
    key = rotate(heads("attn_k"), turn).transpose(1, 2)
    mixed = F.scaled_dot_product_attention(query, key, heads("attn_v").transpose(1, 2), is_causal=True)
    return F.linear(mixed.transpose(1, 2).flatten(-2), params[block + "attn_output.weight"])


def feed_forward(x: Tensor, params: Params, block: str) -> Tensor:
    gate = F.silu(F.linear(x, params[block + "ffn_gate.weight"]))
    return F.linear(gate * F.linear(x, params[block + "ffn_up.weight"]), params[block + "ffn_down.weight"])


def token_losses(params: Params, tokens: Tensor, shape: Shape, dropout: float = 0.0) -> Tensor:
    """The loss in nats of every token but each row's first: [batch, length] gives [batch, length - 1]."""

    def norm(x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, (shape.embedding_length,), params[name + ".weight"], shape.norm_epsilon)

    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    turn = rotation(shape, inputs.shape[1])
    x = F.embedding(inputs, params["token_embd.weight"])
    for index in range(shape.block_count):
        block = f"blk.{index}."
        added = attention(norm(x, block + "attn_norm"), params, block, turn, shape)
        x = x + F.dropout(added, dropout, training=dropout > 0)
        added = feed_forward(norm(x, block + "ffn_norm"), params, block)
        x = x + F.dropout(added, dropout, training=dropout > 0)
    logits = F.linear(norm(x, "output_norm"), params["token_embd.weight"])
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view(targets.shape)
