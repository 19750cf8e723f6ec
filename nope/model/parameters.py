"""Parameters of a module and the product with one, whatever the model. Parameters float32,
computation in `dtype`."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model import context
from nope.runtime.products import exact


def parameter(
    module: nn.Module,
    name: str,
    init: jax.nn.initializers.Initializer,
    shape: tuple[int, ...],
    axes: tuple[str, ...],
    dtype: str = 'float32',
) -> jax.Array:
    """A float32 parameter with logical axis names, read in `dtype`."""
    boxed = nn.with_logical_partitioning(init, axes)
    return jnp.asarray(module.param(name, boxed, shape, jnp.float32), dtype)


def bias(
    module: nn.Module, name: str, shape: tuple[int, ...], axes: tuple[str, ...], dtype: str
) -> jax.Array:
    """A bias that starts at 0."""
    return parameter(module, name, nn.initializers.zeros, shape, axes, dtype)


def project(x_BTC: jax.Array, weight_CE: jax.Array) -> jax.Array:
    """x @ W with all tokens on one axis, [B, T, E].

    As one plain product XLA's CPU backend needs no transposed copies for the gradient of W
    (twice as fast there; on accelerators the reshapes are free). Where the sequence is
    sharded the merged axis could not be, and the axes stay apart.
    """
    precision = exact(x_BTC.dtype)
    if context.sequence_sharded():
        return jnp.matmul(x_BTC, weight_CE, precision=precision)
    B, T, C = x_BTC.shape
    return jnp.matmul(x_BTC.reshape(B * T, C), weight_CE, precision=precision).reshape(B, T, -1)
