"""Keys and values of the tokens that a model has read, so that the next ones need not read them.

A cache has a fixed number of slots, so that a program that adds tokens to it compiles once. All
rows fill the same slots: a row with fewer tokens than others begins with padding (left padding),
and its last token lies where theirs do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.config import ModelConfig
from nope.model.mixers import Attention
from nope.runtime.mesh_axes import axes_of, parts_of
from nope.runtime.platform import target_device


def _split_over_mesh(x_BSKH: jax.Array) -> jax.Array:
    """Rows and heads on the axes of the mesh that divide them.

    An uneven part of the heads would have another shape than the compiled program's.
    """
    axes: list[str | None] = ['batch', None, 'kv_heads', 'head_dim']
    if x_BSKH.shape[2] % parts_of(axes_of('kv_heads')):
        axes[2] = None
    return nn.with_logical_constraint(x_BSKH, tuple(axes))


class LayerCache(NamedTuple):
    """Keys (with positions) and values of one layer, [B, S, K, H] in the model's dtype.

    forgotten_BSN1: of a layer with forget gates the sums of their logarithms up to each token,
        float32 [B, S, gated heads, 1].
    """

    keys_BSKH: jax.Array
    values_BSKH: jax.Array
    forgotten_BSN1: jax.Array | None = None

    def write(
        self,
        keys_BTKH: jax.Array,
        values_BTKH: jax.Array,
        slot: int | jax.Array,
        forgotten_BTN: jax.Array | None = None,
    ) -> LayerCache:
        """The same with T tokens in the slots from `slot` on."""

        def written(old: jax.Array, new: jax.Array) -> jax.Array:
            # XLA's CPU compiler merges a slice's update with what reads the result, and then copies
            # the array for it, several times. It does not do so with a scatter, nor in a loop that
            # carries the array `merged` (one token is a slice for it in any case). For accelerators
            # a slice is a slice.
            new, T = new.astype(old.dtype), new.shape[1]
            update = jax.lax.dynamic_update_slice_in_dim
            if T == 1 or isinstance(slot, int):
                whole = update(merged(old), merged(new), slot, axis=-2).reshape(old.shape)
            elif target_device()[0] != 'cpu':
                whole = update(old, new, slot, axis=1)
            else:
                slots_T = slot + jnp.arange(T)
                whole = old.at[:, slots_T].set(new, indices_are_sorted=True, unique_indices=True)
            return _split_over_mesh(whole)

        sums = self.forgotten_BSN1
        if sums is not None and forgotten_BTN is not None:
            sums = written(sums, forgotten_BTN[..., None])
        return LayerCache(
            written(self.keys_BSKH, keys_BTKH), written(self.values_BSKH, values_BTKH), sums
        )


def merged(x_BSKH: jax.Array) -> jax.Array:
    """[B, S, K H], and [S, K H] of a single row: A token is one run of numbers, without an axis of
    length 1."""
    B, S = x_BSKH.shape[:2]
    return x_BSKH.reshape(S, -1) if B == 1 else x_BSKH.reshape(B, S, -1)


class Cache(NamedTuple):
    """Of a batch of sequences.

    layers: one array a layer and kind, which are written in place and never gathered; the state of
        a layer with another mixer than attention; None of a layer that attends to the keys of an
        earlier one, and of an MLP alone.
    filled: slots in use in every row. An int where it is known, else an int32 scalar.
    padding_B: int32, empty slots at the start of each row. None for none.
    length_B: float32, the n of every row. Laws and dynamic encodings follow it. In generation it
        is the final length, prompt plus continuation, and no position lies beyond.
    """

    layers: tuple[Any, ...]
    filled: int | jax.Array
    padding_B: jax.Array | None
    length_B: jax.Array

    @property
    def slots(self) -> int:
        with_keys = (layer for layer in self.layers if isinstance(layer, LayerCache))
        return next(with_keys).keys_BSKH.shape[1]  # every model has a layer with attention

    def positions(self, tokens: int) -> jax.Array:
        """int32 [B, T]: of the next tokens; 0 in padding before a row, length - 1 in what fills up
        a piece behind its end."""
        slots_BT = (self.filled + jnp.arange(tokens, dtype=jnp.int32))[None]
        if self.padding_B is not None:
            slots_BT = slots_BT - self.padding_B[:, None]
        return jnp.clip(slots_BT, 0, self.length_B.astype(jnp.int32)[:, None] - 1)

    def places(self, first: int | jax.Array, slots: int) -> jax.Array:
        """int32 [B, slots]: the positions of what the slots from `first` on hold or will hold; 0 in
        padding before a row."""
        slots_BS = (first + jnp.arange(slots, dtype=jnp.int32))[None]
        if self.padding_B is not None:
            slots_BS = jnp.maximum(slots_BS - self.padding_B[:, None], 0)
        return jnp.broadcast_to(slots_BS, (self.length_B.shape[0], slots))

    def segments(self, tokens: int) -> tuple[jax.Array, jax.Array] | tuple[None, None]:
        """Segment ids of the next tokens [B, T] and of all slots [B, S]: 1, and 0 for padding."""
        if self.padding_B is None:
            return None, None
        slots_S = jnp.arange(self.slots, dtype=jnp.int32)
        slots_T = self.filled + jnp.arange(tokens, dtype=jnp.int32)
        real_BT, real_BS = (
            (slots >= self.padding_B[:, None]).astype(jnp.int32) for slots in (slots_T, slots_S)
        )
        return real_BT, real_BS

    def take(self, rows_R: jax.Array) -> Cache:
        """The rows of these indices, in that order."""

        def taken(x: jax.Array) -> jax.Array:
            return jnp.take(x, rows_R, axis=0)

        layers = self._each(lambda x: _split_over_mesh(taken(x)), taken)
        padding_B = None if self.padding_B is None else taken(self.padding_B)
        return Cache(layers, self.filled, padding_B, taken(self.length_B))

    def reorder(self, rows_B: jax.Array, start: int, groups: int = 1) -> Cache:
        """Row b takes over the slots of row rows_B[b] from `start` on, and its states; both agree
        before it.
        groups: equal parts of the rows, which take over from their own part alone."""
        rows_GR = rows_B.reshape(groups, -1)
        R = rows_GR.shape[1]
        if R == 1:
            return self
        # Products instead of a gather, which the compiler would merge with the write: reading and
        # writing the same slots, it would copy the cache to do so.
        source_GRR = rows_GR[..., None] == jnp.arange(rows_B.size).reshape(groups, 1, R)

        def reordered(x_BSKH: jax.Array) -> jax.Array:
            x_BSC = merged(x_BSKH)
            moved = jnp.einsum(
                'gij,gjn->gin',
                source_GRR.astype(x_BSC.dtype),
                x_BSC[:, start:].reshape(groups, R, -1),
                precision='highest',
            ).reshape(x_BSC.shape[0], -1, x_BSC.shape[2])
            x_BSC = jax.lax.dynamic_update_slice_in_dim(x_BSC, moved, start, axis=1)
            return x_BSC.reshape(x_BSKH.shape)

        return self._replace(layers=self._each(reordered, lambda x: jnp.take(x, rows_B, axis=0)))

    def _each(
        self, of_slots: Callable[[jax.Array], jax.Array], of_state: Callable[[jax.Array], jax.Array]
    ) -> tuple[Any, ...]:
        """The layers with other arrays: those that have slots, and those of states."""
        return tuple(
            jax.tree.map(of_slots if isinstance(layer, LayerCache) else of_state, layer)
            for layer in self.layers
        )


def empty(
    config: ModelConfig, length_B: jax.Array, slots: int, padding_B: jax.Array | None = None
) -> Cache:
    """A cache of B rows that holds nothing. Arguments as the fields of `Cache`. ValueError for an
    encoder."""
    if not config.causal:
        raise ValueError(
            'model.causal is False: an encoder reads a sequence whole, without a cache'
        )
    rows = length_B.shape[0], slots

    def zeros(heads: int, size: int, dtype: str = config.dtype) -> jax.Array:
        return _split_over_mesh(jnp.zeros((*rows, heads, size), dtype))

    def layer(i: int) -> Any:
        mixer = config.layer_kinds[i].mixer
        if mixer is None or config.source_of(i) != i:
            return None
        if not isinstance(mixer, Attention):
            return mixer.empty(length_B.shape[0], config.dtype)
        own, gate = config.of_layer(i), config.gate
        keys, values = (zeros(own.kv_heads, own.head_dim) for _ in range(2))
        return LayerCache(keys, values, None if gate is None else zeros(gate.heads, 1, 'float32'))

    layers = tuple(layer(i) for i in range(config.layers))
    return Cache(layers, 0, padding_B, length_B)
