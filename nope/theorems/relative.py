"""Relative positions from the second layer without position encoding (Theorem 2, arXiv 2305.19466).

The first layer writes the position t of every token into its hidden state (`absolute`). In the
second, the query of token t has slope (1, -t) in two dimensions and the key of token i has (i, 1).
So their logit has slope (i - t) in it. Positions enter as their distance alone, a recency bias as
ALiBi's. The rest of queries and keys compares contents: here any matrix A of numbers, one for
each pair of tokens,

    logit[t, i] = slope (i - t) + A[token_t, token_i].

Values are the tokens, one-hot, and the layer writes them into dimensions of their own: the hidden
state of token t has there the weight that it gave to every token of the vocabulary.
"""

from __future__ import annotations

import numpy as np

from nope.model import ModelConfig
from nope.runtime.errors import FieldError
from nope.theorems import absolute
from nope.theorems.absolute import ONE, POSITION, RESERVED, zeros
from nope.variables import Variables


def model(longest: int, vocab_size: int, dtype: str = 'float32') -> ModelConfig:
    """Two layers with one head, for up to `longest` tokens, logits not divided by sqrt(H).

    FieldError, naming longest or vocab_size, where there is nothing to count or to compare.
    """
    if longest < 1:
        raise FieldError('longest', longest, 'it must be at least 1')
    if vocab_size < 1:
        raise FieldError('vocab_size', vocab_size, 'it must be at least 1')
    return ModelConfig(
        layers=2,
        width=RESERVED + 2 * vocab_size,
        heads=1,
        kv_heads=1,
        head_dim=2 + vocab_size,
        mlp_width=longest + 1,
        vocab_size=vocab_size,
        tied_head=True,
        norm='none',
        mlp='plain',
        activation='relu',
        softmax_scale=1.0,
        dtype=dtype,
    )


def variables(
    config: ModelConfig, slope: float = 1.0, content_VV: np.ndarray | None = None, seed: int = 0
) -> Variables:
    """Weights of that model, float32. content_VV: A, by the query's token and the key's; None for
    zeros. seed: draws the first layer's queries, which are arbitrary. ValueError for A of another
    shape."""
    V = config.vocab_size
    content_VV = zeros(V, V) if content_VV is None else np.asarray(content_VV, np.float32)
    if content_VV.shape != (V, V):
        raise ValueError(f'content_VV has shape {content_VV.shape}; it must be {(V, V)}')
    rng = np.random.default_rng(seed)
    embedding_VD = absolute.embedding(config, rng)
    embedding_VD[:, tokens(config)] = np.eye(V)
    embedding_VD[:, weights(config)] = 0
    layers = [absolute.counting_layer(config, rng), _comparing_layer(config, slope, content_VV)]
    return absolute.assembled(config, embedding_VD, layers)


def tokens(config: ModelConfig) -> slice:
    """Dimensions of a hidden state that have its token, one-hot."""
    return slice(RESERVED, RESERVED + config.vocab_size)


def weights(config: ModelConfig) -> slice:
    """Dimensions of a hidden state that have the weights it gave to tokens."""
    return slice(RESERVED + config.vocab_size, config.width)


def _comparing_layer(
    config: ModelConfig, slope: float, content_VV: np.ndarray
) -> dict[str, dict[str, np.ndarray]]:
    D, H, F = config.width, config.head_dim, config.mlp_width
    eye_VV = np.eye(config.vocab_size, dtype=np.float32)
    query_DNH, key_DNH, value_DNH, output_NHD = (
        zeros(D, 1, H),
        zeros(D, 1, H),
        zeros(D, 1, H),
        zeros(1, H, D),
    )
    query_DNH[ONE, 0, 0], query_DNH[POSITION, 0, 1] = slope, -slope
    key_DNH[POSITION, 0, 0], key_DNH[ONE, 0, 1] = 1, 1
    query_DNH[tokens(config), 0, 2:] = content_VV
    key_DNH[tokens(config), 0, 2:] = eye_VV
    value_DNH[tokens(config), 0, 2:] = eye_VV
    output_NHD[0, 2:, weights(config)] = eye_VV
    attention = {'query': query_DNH, 'key': key_DNH, 'value': value_DNH, 'output': output_NHD}
    return {'attention': attention, 'mlp': {'up': zeros(D, F), 'down': zeros(F, D)}}
