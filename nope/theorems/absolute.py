"""Absolute positions from one layer without position encoding (Theorem 1 of arXiv 2305.19466).

The hidden states have three reserved dimensions: ONE is 1 for every token, FIRST is 1 for the first
token alone, and POSITION is 0 in the embeddings. Keys are equal, so that the query of token t
spreads its weight evenly over t keys; the value of the first is 1, of the others 0, and attention
adds 1/t to POSITION. The plain MLP turns that into t, and the residual connection holds it.

The paper needs an MLP that maps 1/t to t and takes it from universal approximation. Here it is
exact: for x = 1/t with t <= N,

    t = 1 + sum over k = 1 .. N - 1 of 2 k relu(1/k - x),

as the terms with k < t are 2 - 2 k/t and the others 0. No term is above 2, so that rounding grows
with t alone. (The same function with the ramps the other way around, relu(x - 1/k), adds numbers of
the order of N^2 that cancel.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nope.model import ModelConfig, lam
from nope.runtime.errors import FieldError
from nope.variables import Variables

ONE, FIRST, POSITION = 0, 1, 2  # reserved dimensions
RESERVED = 3
BOS = 0  # id of the first token of every sequence


def model(longest: int, vocab_size: int = 8, width: int = 8, dtype: str = 'float32') -> ModelConfig:
    """One layer with one head that counts up to `longest` tokens, BOS the first of them.

    FieldError, naming longest or width, where there is nothing to count or no room to.
    """
    if longest < 1:
        raise FieldError('longest', longest, 'it must be at least 1')
    if width < RESERVED:
        raise FieldError('width', width, f'it must be at least {RESERVED}')
    return ModelConfig(
        layers=1,
        width=width,
        heads=1,
        kv_heads=1,
        head_dim=width,
        mlp_width=longest + 1,
        vocab_size=vocab_size,
        tied_head=True,
        norm='none',
        mlp='plain',
        activation='relu',
        dtype=dtype,
    )


def variables(config: ModelConfig, seed: int = 0) -> Variables:
    """Weights of that model, float32. The theorem leaves the queries' projection and the rest of
    the embeddings free: they are drawn from `seed`."""
    rng = np.random.default_rng(seed)
    layer = counting_layer(config, rng)
    return assembled(config, embedding(config, rng), [layer])


def embedding(config: ModelConfig, rng: np.random.Generator) -> np.ndarray:
    """[V, D] float32: reserved dimensions, then free ones, drawn from a normal distribution."""
    rows_VD = rng.normal(size=(config.vocab_size, config.width)).astype(np.float32)
    rows_VD[:, :RESERVED] = 0
    rows_VD[:, ONE] = 1
    rows_VD[BOS, FIRST] = 1
    return rows_VD


def counting_layer(config: ModelConfig, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Arrays of a layer that writes t into POSITION, for t up to its MLP's width less 1."""
    D, H, F = config.width, config.head_dim, config.mlp_width
    query_DNH = rng.normal(size=(D, 1, H)).astype(np.float32)
    key_DNH, value_DNH = zeros(D, 1, H), zeros(D, 1, H)
    key_DNH[ONE] = 1
    value_DNH[FIRST, 0, 0] = 1
    output_NHD = zeros(1, H, D)
    output_NHD[0, 0, POSITION] = 1
    up_DF, down_FD = zeros(D, F), zeros(F, D)
    k = np.arange(1, F - 1)
    up_DF[ONE, : F - 2] = 1 / k
    up_DF[POSITION, : F - 2] = -1
    down_FD[: F - 2, POSITION] = 2 * k
    up_DF[ONE, F - 2] = 1  # + 1
    down_FD[F - 2, POSITION] = 1
    up_DF[POSITION, F - 1] = 1  # - 1/t, which the residual connection adds
    down_FD[F - 1, POSITION] = -1
    attention = {'query': query_DNH, 'key': key_DNH, 'value': value_DNH, 'output': output_NHD}
    return {'attention': attention, 'mlp': {'up': up_DF, 'down': down_FD}}


def assembled(
    config: ModelConfig, embedding_VD: np.ndarray, layers: list[dict[str, dict[str, Any]]]
) -> Variables:
    """Variables of a model from its embeddings and the arrays of its layers."""
    stacked = {
        part: {name: np.stack([layer[part][name] for layer in layers]) for name in arrays}
        for part, arrays in layers[0].items()
    }
    coefficients_LN = lam.initial(config.lam, config.layers, config.heads)
    return {
        'params': {'embedding': embedding_VD, 'layers': stacked},
        'lam': {'head': coefficients_LN},
    }


def zeros(*shape: int) -> np.ndarray:
    """A float32 array of zeros."""
    return np.zeros(shape, np.float32)
