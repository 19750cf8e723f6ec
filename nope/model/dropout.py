"""Keys of dropout: of a step, a row of its batch, a place in the model and a layer.

A mask is a function of these numbers and of the seed. So a resumed run and a rematerialised layer
draw the same masks again. Neither the mesh nor the number of micro-batches changes a mask.
"""

from __future__ import annotations

import enum

import jax
import jax.numpy as jnp

IMPLEMENTATION = 'threefry2x32'  # counter-based, whatever JAX's default is
_STREAM = 0xD409  # apart from the keys of fresh parameters, which have the same seeds


class Place(enum.IntEnum):
    """Places of dropout in a decoder: T5's (Raffel et al., 2020, arXiv:1910.10683, section 2.1)."""

    EMBEDDING = 0
    WEIGHTS = 1  # of attention
    ATTENTION = 2  # what a layer's attention adds
    INNER = 3  # the MLP's activations
    MLP = 4  # what a layer's MLP adds
    FINAL = 5  # the final hidden states


def row_keys(seed: jax.Array, step: jax.Array, rows: jax.Array) -> jax.Array:
    """Typed keys of the rows of a step's batch, of the shape of `rows`.

    seed: uint32 scalar. step: int32 scalar, updates made before. rows: int32, numbers of the rows
    in the whole batch.
    """
    key = jax.random.fold_in(jax.random.key(seed, impl=IMPLEMENTATION), _STREAM)
    return _folded(jax.random.fold_in(key, step), rows)


def layer_keys(keys_B: jax.Array, layers: int) -> jax.Array:
    """Typed keys [L, B] of every layer, from those of the rows."""
    return jax.vmap(_each, in_axes=(None, 0))(keys_B, jnp.arange(layers))


def place_keys(keys_B: jax.Array, place: Place) -> jax.Array:
    """Typed keys [B] of a place: of the model from those of the rows, of a layer from its own."""
    return _each(keys_B, jnp.int32(_FIRST + place))


def head_keys(keys_B: jax.Array, heads: int) -> jax.Array:
    """Typed keys [B, N] of the attention weights of every head, from those of a layer."""
    return jax.vmap(_folded, in_axes=(0, None))(
        place_keys(keys_B, Place.WEIGHTS), jnp.arange(heads)
    )


_FIRST = 2**16  # behind the numbers of all layers: keys of rows are folded with both


def _each(keys_B: jax.Array, number: jax.Array) -> jax.Array:
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys_B, number)


def _folded(key: jax.Array, numbers: jax.Array) -> jax.Array:
    folded = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers.ravel())
    return folded.reshape(numbers.shape)
