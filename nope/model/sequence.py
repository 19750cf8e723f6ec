"""Sequence of a call: masks, positions and length of its tokens, the same for all layers.

Chunks are the local layers of iRoPE (Llama 4). A chunk is a segment: two tokens see each other
where they have both the document and floor(position / chunk) in common. So every kernel that keeps
documents apart has chunks, at the cost of attention over the whole sequence.

Randomised position encodings (Ruoss et al., 2023, arXiv 2305.16843) give every training sequence a
sorted random subset of a longer range (`nope.data.drawn`), so that no distance inside the range is
new later. The paper draws positions in evaluations too; here they spread evenly over the range.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.attention import Mask
from nope.model.cache import Cache
from nope.model.config import ModelConfig
from nope.model.kinds import LayerKind


class Places(NamedTuple):
    """Positions by which queries and keys fall into chunks, int32 [B, T] and [B, S], 0 or more."""

    queries_BT: jax.Array
    keys_BS: jax.Array


class Sequence(NamedTuple):
    """Masks, positions and length of the tokens, the same for all layers.

    mask: who sees whom. Beside a cache its offset is the slot of the first token. positions_BT:
    int32, 0-based, in the order of the tokens. Encodings take encoded_BT in their place in a model
    with a range of positions. Laws and dynamic encodings follow length, n, one for all rows or [B].
    table: the position encoding's learned array, if it has one. places: those that chunks are
    counted by, if the model has chunks. queries_R: those whose attention weights are returned.
    """

    mask: Mask
    positions_BT: jax.Array
    length: jax.Array
    table: jax.Array | None
    places: Places | None = None
    encoded_BT: jax.Array | None = None
    queries_R: jax.Array | None = None

    @property
    def for_encodings(self) -> jax.Array:
        """The positions that encodings take."""
        return self.positions_BT if self.encoded_BT is None else self.encoded_BT

    def mask_of(self, kind: LayerKind) -> Mask:
        """The mask of layers of that kind, but for their window."""
        if kind.chunk is None:
            return self.mask
        assert self.places is not None
        return masked(self.mask, self.places, kind.chunk)


def of_tokens(
    config: ModelConfig,
    tokens_BT: jax.Array,
    table: jax.Array | None,
    *,
    segments_BT: jax.Array | None,
    positions_BT: jax.Array | None,
    length: int | jax.Array | None,
    queries_R: jax.Array | None,
) -> Sequence:
    """The sequence of whole rows; arguments as `Transformer` takes them."""
    T = tokens_BT.shape[1]
    drawn_BT, order_BT = (
        (None, positions_BT) if config.position_range is None else (positions_BT, None)
    )
    if order_BT is None:
        order_BT = jnp.arange(T, dtype=jnp.int32)[None]
    n = jnp.asarray(T if length is None else length, jnp.float32)
    mask = Mask(config.causal, segments_BT, segments_BT)
    given = Sequence(mask, order_BT, n, table, encoded_BT=drawn_BT, queries_R=queries_R)
    sequence = _spread(config, given)
    if not config.chunked:
        return sequence
    positions_BT = jnp.broadcast_to(order_BT, tokens_BT.shape)
    return sequence._replace(places=Places(positions_BT, positions_BT))


def of_cache(config: ModelConfig, tokens: int, cache: Cache, table: jax.Array | None) -> Sequence:
    """The next tokens after those of a cache."""
    segments_BT, segments_BS = cache.segments(tokens)
    mask = Mask(q_segments_BT=segments_BT, kv_segments_BS=segments_BS, offset=cache.filled)
    sequence = _spread(config, Sequence(mask, cache.positions(tokens), cache.length_B, table))
    if not config.chunked:
        return sequence
    places = Places(cache.places(cache.filled, tokens), cache.places(0, cache.slots))
    return sequence._replace(places=places)


def _spread(config: ModelConfig, sequence: Sequence) -> Sequence:
    """The sequence with positions spread over the model's range, where none are given."""
    if config.position_range is None or sequence.encoded_BT is not None:
        return sequence
    encoded_BT = spread(sequence.positions_BT, sequence.length, config.position_range)
    return sequence._replace(encoded_BT=encoded_BT)


def masked(mask: Mask, places: Places, chunk: int) -> Mask:
    """The mask whose queries see the keys of their own chunk only, among those that they saw."""
    q_BT, k_BS = (positions // chunk for positions in places)
    if mask.q_segments_BT is not None and mask.kv_segments_BS is not None:
        chunks = 1 + jnp.maximum(jnp.max(q_BT), jnp.max(k_BS))
        q_BT += mask.q_segments_BT * chunks
        k_BS += mask.kv_segments_BS * chunks
    return dataclasses.replace(mask, q_segments_BT=q_BT, kv_segments_BS=k_BS)


def spread(positions_BT: jax.Array, length: int | jax.Array, position_range: int) -> jax.Array:
    """floor(i range / n) of position i, int32 [B, T]; i itself in sequences longer than the range.

    positions_BT: int32, 0-based; from n on, in padding after a row, as n - 1. length: n, of all
    rows or [B]. Exact for n up to 2**26.
    """
    n = jnp.maximum(jnp.asarray(length).astype(jnp.int32), 1)
    n = n[:, None] if n.ndim else n
    positions_BT = jnp.minimum(positions_BT, n - 1)
    whole, rest = position_range // n, position_range % n
    # floor(i rest / n), for which i rest may be above int32. float32 is off by a few at most; the
    # remainder says by how many, exactly, since wrapping around cancels in a difference.
    share = rest.astype(jnp.float32) / n.astype(jnp.float32)
    between = (positions_BT.astype(jnp.float32) * share).astype(jnp.int32)
    between += (positions_BT * rest - between * n) // n
    return jnp.where(n > position_range, positions_BT, positions_BT * whole + between)
