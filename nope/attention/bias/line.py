"""Numbers by distance, in one line, and spread over a block of logits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from nope.attention.bias.base import Bias
from nope.runtime.platform import target_device


def distances(queries: int, keys: int, offset: int | jax.Array | None) -> jax.Array:
    """int32 [T + S - 1]: all distances, from that of the first query and the last key on."""
    return (0 if offset is None else offset) + jnp.arange(1 - keys, queries, dtype=jnp.int32)


def toeplitz(line: jax.Array, queries: int) -> jax.Array:
    """[..., T + S - 1] -> [..., T, S] with entry (t, s) = line[t - s + S - 1].

    Each row is the one before it moved by one. Linear, and its transpose sums over diagonals. The
    same numbers on every device, by what it copies fast.
    """
    reverse, size = line[..., ::-1], line.shape[-1]
    keys = size - queries + 1
    if target_device()[0] == 'cpu':  # one slice a row

        def row(t: jax.Array) -> jax.Array:
            return lax.dynamic_slice_in_dim(reverse, queries - 1 - t, keys, axis=-1)

        return jax.vmap(row, out_axes=-2)(jnp.arange(queries))
    # Copies and a reshape, no gather, and no scatter in the transpose. One more entry, so that rows
    # of `size` numbers start one later each time around.
    turned = jnp.concatenate([reverse, jnp.zeros_like(reverse[..., :1])], axis=-1)
    turned = jnp.roll(turned, 1 - queries, axis=-1)
    flat = jnp.tile(turned, (1,) * (reverse.ndim - 1) + (queries,))
    rows = flat[..., : queries * size].reshape(*reverse.shape[:-1], queries, size)
    return rows[..., :keys]


def as_array(bias: Bias, queries: int, keys: int, offset: int | jax.Array | None) -> jax.Array:
    """The dense bias [N, T, S]. O(T S) memory: for the reference and for tests."""
    return bias.by_distance(_pairs(queries, keys, offset)).reshape(-1, queries, keys)


def factors_as_array(
    bias: Bias, queries: int, keys: int, offset: int | jax.Array | None
) -> jax.Array | None:
    """The dense factors [N, T, S], None where they are 1. Memory as `as_array`."""
    factors_ND = bias.factors_by_distance(_pairs(queries, keys, offset))
    return None if factors_ND is None else factors_ND.reshape(-1, queries, keys)


def _pairs(queries: int, keys: int, offset: int | jax.Array | None) -> jax.Array:
    """The distance of every pair, row by row, int32 [T S]."""
    first = 0 if offset is None else offset
    return (first + jnp.arange(queries)[:, None] - jnp.arange(keys)[None, :]).reshape(-1)
