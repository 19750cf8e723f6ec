"""Programs that the tests of the model share, compiled once for each config and shape."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from nope.data import Batch
from nope.model import ModelConfig, ModelOutput, apply
from nope.training.step import batch_loss
from nope.variables import Variables
from tests import tiny

T = 12


@functools.partial(jax.jit, static_argnames=('config', 'entropy'))
def run(
    config: ModelConfig,
    variables: Variables,
    tokens: Any,
    segments: Any = None,
    positions: Any = None,
    length: float | None = None,
    entropy: bool = True,
) -> ModelOutput:
    return apply(
        config,
        variables,
        tokens,
        segments_BT=segments,
        positions_BT=positions,
        length=length,
        entropy=entropy,
    )


@functools.partial(jax.jit, static_argnums=0)
def loss_and_gradients(config: ModelConfig, variables: Variables, blocks: Any) -> tuple:
    return jax.value_and_grad(lambda v: batch_loss(config, v, Batch.of_blocks(blocks)))(variables)


def influence(config: ModelConfig) -> tuple[np.ndarray, np.ndarray]:
    """By how much outputs change: [S, T], that at t when token s is another one, and [T], that at t
    when the tokens but the last are permuted."""
    tokens = tiny.tokens(1, T).repeat(T + 2, axis=0)
    at = np.arange(T)
    tokens[at, at] = (tokens[at, at] + 1) % config.vocab_size
    tokens[T, :-1] = np.random.default_rng(1).permutation(tokens[T, :-1])
    hidden = np.asarray(run(config, tiny.variables(config), tokens, entropy=False).hidden)
    assert np.all(np.isfinite(hidden))
    change = np.abs(hidden[:-1] - hidden[-1]).max(axis=-1)
    return change[:T], change[T]
