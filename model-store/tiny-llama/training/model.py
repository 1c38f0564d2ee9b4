"""The Llama architecture in JAX, as llama.cpp computes it: RMSNorm, rotary positions, SwiGLU, tied embeddings.

Weights are kept as [outputs, inputs], the layout that GGUF wants. The rotation takes interleaved pairs (0::2, 1::2),
which is llama.cpp's for this architecture, so no row of q and k has to be moved when the model is written.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

Params = dict[str, jax.Array]


@dataclass(frozen=True)
class Shape:
    """The size of a model; the names are GGUF's."""

    vocab_size: int = 2048
    embedding_length: int = 192
    block_count: int = 6
    feed_forward_length: int = 512
    head_count: int = 4
    context_length: int = 256
    rope_freq_base: float = 10000.0
    norm_epsilon: float = 1e-5

    @property
    def head_size(self) -> int:
        return self.embedding_length // self.head_count


def initial_params(key: jax.Array, shape: Shape) -> Params:
    """Random weights by GGUF tensor name. What a block adds to the residual stream starts at zero."""
    width, hidden = shape.embedding_length, shape.feed_forward_length

    def matrix(rows: int, columns: int, scale: float) -> jax.Array:
        nonlocal key
        key, mine = jax.random.split(key)
        return scale * jax.random.normal(mine, (rows, columns), jnp.float32)

    params = {
        "token_embd.weight": matrix(shape.vocab_size, width, 0.04),
        "output_norm.weight": jnp.ones(width),
    }
    for index in range(shape.block_count):
        block = f"blk.{index}."
        params[block + "attn_norm.weight"] = jnp.ones(width)
        params[block + "ffn_norm.weight"] = jnp.ones(width)
        for name in ("attn_q", "attn_k", "attn_v"):
            params[f"{block}{name}.weight"] = matrix(width, width, width**-0.5)
        for name in ("ffn_gate", "ffn_up"):
            params[f"{block}{name}.weight"] = matrix(hidden, width, width**-0.5)
        params[block + "attn_output.weight"] = jnp.zeros((width, width))
        params[block + "ffn_down.weight"] = jnp.zeros((width, hidden))
    return params


def parameter_count(params: Params) -> int:
    return sum(value.size for value in params.values())


def rotation(shape: Shape, length: int) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine per position and pair, [length, head_size / 2]."""
    pairs = jnp.arange(0, shape.head_size, 2) / shape.head_size
    angles = jnp.arange(length)[:, None] * shape.rope_freq_base ** -pairs[None, :]
    return jnp.cos(angles), jnp.sin(angles)


def rotate(x: jax.Array, cosine: jax.Array, sine: jax.Array) -> jax.Array:
    """Turn the interleaved pairs of x [..., length, head_size]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = jnp.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
    return turned.reshape(x.shape)


def rms_norm(x: jax.Array, weight: jax.Array, epsilon: float) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def attention(x: jax.Array, params: Params, block: str, shape: Shape) -> jax.Array:
    batch, length, width = x.shape

    def heads(name: str) -> jax.Array:
        projected = x @ params[f"{block}{name}.weight"].T
        return projected.reshape(batch, length, shape.head_count, shape.head_size).transpose(0, 2, 1, 3)

    cosine, sine = rotation(shape, length)
    query = rotate(heads("attn_q"), cosine, sine) * shape.head_size**-0.5
    key = rotate(heads("attn_k"), cosine, sine)
    scores = query @ key.transpose(0, 1, 3, 2)
    visible = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(visible, scores, -1e30), axis=-1)
    mixed = (weights @ heads("attn_v")).transpose(0, 2, 1, 3).reshape(batch, length, width)
    return mixed @ params[block + "attn_output.weight"].T


def feed_forward(x: jax.Array, params: Params, block: str) -> jax.Array:
    gate = jax.nn.silu(x @ params[block + "ffn_gate.weight"].T)
    return (gate * (x @ params[block + "ffn_up.weight"].T)) @ params[block + "ffn_down.weight"].T


def logits(params: Params, tokens: jax.Array, shape: Shape, dropout_key: jax.Array | None = None,
           dropout: float = 0.0) -> jax.Array:
    """Next-token logits [batch, length, vocabulary]; with a key, what each block adds is dropped at random."""

    def dropped(x: jax.Array, number: int) -> jax.Array:
        if dropout_key is None or dropout == 0.0:
            return x
        kept = jax.random.bernoulli(jax.random.fold_in(dropout_key, number), 1 - dropout, x.shape)
        return jnp.where(kept, x / (1 - dropout), 0.0)

    x = params["token_embd.weight"][tokens]
    for index in range(shape.block_count):
        block = f"blk.{index}."
        normed = rms_norm(x, params[block + "attn_norm.weight"], shape.norm_epsilon)
        x = x + dropped(attention(normed, params, block, shape), 2 * index)
        normed = rms_norm(x, params[block + "ffn_norm.weight"], shape.norm_epsilon)
        x = x + dropped(feed_forward(normed, params, block), 2 * index + 1)
    x = rms_norm(x, params["output_norm.weight"], shape.norm_epsilon)
    return x @ params["token_embd.weight"].T


def token_losses(params: Params, tokens: jax.Array, shape: Shape, dropout_key: jax.Array | None = None,
                 dropout: float = 0.0) -> jax.Array:
    """The loss in nats of every token but the first, [batch, length - 1]."""
    scores = logits(params, tokens[:, :-1], shape, dropout_key, dropout)
    chosen = jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1)[..., 0]
    return jax.nn.logsumexp(scores, axis=-1) - chosen
