"""Programs that the tests of the model share, compiled once for each config and shape."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

from nope.model import ModelConfig, ModelOutput, apply
from nope.state import Variables
from nope.step import block_loss
from tests import tiny

# Programs that run once: half the time to compile, the same operations.
QUICK = {'xla_backend_optimization_level': 0}
T = 12


@functools.partial(jax.jit, static_argnames=('config', 'entropy'), compiler_options=QUICK)
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


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def loss_and_gradients(config: ModelConfig, variables: Variables, blocks: Any) -> tuple:
    return jax.value_and_grad(lambda v: block_loss(config, v, blocks))(variables)


def influence(config: ModelConfig) -> np.ndarray:
    """[S, T]: by how much the output at t changes when token s is another one."""
    tokens = tiny.tokens(1, T).repeat(T + 1, axis=0)
    changed = np.arange(T)
    tokens[changed, changed] = (tokens[changed, changed] + 1) % config.vocab_size
    hidden = run(config, tiny.variables(config), tokens, entropy=False).hidden
    assert np.all(np.isfinite(hidden))
    return np.abs(np.asarray(hidden[:T] - hidden[T])).max(axis=-1)
