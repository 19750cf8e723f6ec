"""Programs that the tests of decoding share, and a model that is a table."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nope.model import ModelConfig, ModelOutput, apply
from nope.model.cache import Cache, empty
from nope.model.decoding import unstack
from nope.positions import Learned, NoPE
from nope.variables import Variables
from tests import tiny


@functools.partial(jax.jit, static_argnames='config')
def whole(config: ModelConfig, variables: Variables, tokens: Any, length: Any) -> ModelOutput:
    """The model without a cache, as if the sequence had `length` tokens; with entropies."""
    return apply(config, variables, tokens, length=length, entropy=True)


@functools.partial(jax.jit, static_argnames='config')
def piece(config: ModelConfig, weights: Any, tokens: Any, cache: Cache) -> ModelOutput:
    """The model's output at the next tokens, with entropies. weights: `unstack`ed."""
    return apply(config, weights, tokens, cache=cache, entropy=True)


@functools.partial(jax.jit, static_argnames=('config', 'size'))
def in_pieces(
    config: ModelConfig, size: int, variables: Variables, tokens: Any, padding: Any, length: Any
) -> tuple[jax.Array, jax.Array]:
    """Hidden states [B, T, D] and entropies [L, B, N, T], read in pieces of that size by one
    program."""
    weights = unstack(config, variables)
    B, T = tokens.shape

    def read(cache: Cache, tokens: jax.Array) -> tuple[Cache | None, tuple]:
        output = apply(config, weights, tokens, cache=cache, entropy=True)
        return output.cache, (output.hidden, output.entropy)

    cache = empty(config, length, T, padding)._replace(filled=jnp.int32(0))
    pieces = jnp.asarray(tokens).reshape(B, -1, size).swapaxes(0, 1)
    _, (hidden, entropy) = jax.lax.scan(read, cache, pieces)
    return jnp.concatenate(hidden, axis=1), jnp.concatenate(entropy, axis=-1)


def table_model(vocab: int, positions: int = 1) -> ModelConfig:
    """One whose logits can be those of tables: for every token, and for every position."""
    return tiny.model(
        layers=1,
        width=vocab + positions,
        heads=1,
        kv_heads=1,
        head_dim=4,
        mlp_width=4,
        vocab_size=vocab,
        position=Learned(size=positions) if positions > 1 else NoPE(),
    )


def table_variables(table_VV: np.ndarray, bias_PV: np.ndarray | None = None) -> Variables:
    """Of the `table_model` whose logits after token i, at position t, are table_VV[i] + bias_PV[t]:
    embeddings are one-hot, the layer adds nothing, and the head undoes the norm."""
    V, P = len(table_VV), 1 if bias_PV is None else len(bias_PV)
    config = table_model(V, P)
    variables = jax.tree.map(np.zeros_like, tiny.variables(config))
    one_hot = np.eye(V + P, dtype=np.float32)
    bias_PV = np.zeros((P, V)) if bias_PV is None else bias_PV
    norm = np.sqrt((1 if P == 1 else 2) / (V + P) + config.norm_epsilon)
    params = {
        **variables['params'],
        'embedding': one_hot[:V],
        'final_norm': {'scale': np.ones(V + P, np.float32)},
        'head': (norm * np.concatenate([table_VV, bias_PV])).astype(np.float32),
    }
    if P > 1:
        params['position'] = one_hot[V:]
    return {**variables, 'params': params}
