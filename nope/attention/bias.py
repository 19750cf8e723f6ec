"""Biases on the logits that depend on the distance between query and key alone.

A bias is a function of distance = position of the query - position of the key, one per head.
Over T queries and S keys there are T + S - 1 distances, so O(T + S) numbers hold all of it, and
its parameters get their gradients through those. `toeplitz` spreads them over a block of logits.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp


@functools.partial(jax.tree_util.register_dataclass, data_fields=('slopes_N',), meta_fields=())
@dataclasses.dataclass(frozen=True)
class AlibiBias:
    """-slope_n * |distance| (Press et al., 2022, arXiv:2108.12409). slopes_N: float, [N]."""

    slopes_N: jax.Array

    @property
    def heads(self) -> int:
        return jnp.shape(self.slopes_N)[0]

    def check(self) -> None:
        """Raises ValueError for slopes that are no vector."""
        if jnp.ndim(self.slopes_N) != 1:
            raise ValueError(f'bias.slopes_N has shape {jnp.shape(self.slopes_N)}, expected [N]')

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        slopes_N = _precise(self.slopes_N)
        return -slopes_N[:, None] * jnp.abs(distance_D).astype(slopes_N.dtype)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=('table_PN',),
    meta_fields=('max_distance', 'bidirectional'),
)
@dataclasses.dataclass(frozen=True)
class Buckets:
    """A learned number per head and bucket of distances (T5; Raffel et al., 2020,
    arXiv:1910.10683).

    table_PN: float, [P, N], P buckets. Distances below half of the buckets have one each, those
        above share the other half logarithmically, up to `max_distance` and all beyond it.
    bidirectional: keys after the query have half of the buckets for themselves; else they count
        as distance 0.
    """

    table_PN: jax.Array
    max_distance: int = 128
    bidirectional: bool = False

    @property
    def heads(self) -> int:
        return jnp.shape(self.table_PN)[1]

    def check(self) -> None:
        """Raises ValueError for a table without enough buckets."""
        if jnp.ndim(self.table_PN) != 2:
            raise ValueError(f'bias.table_PN has shape {jnp.shape(self.table_PN)}, expected [P, N]')
        exact = self._one_side() // 2
        if exact < 1 or self.max_distance <= exact:
            raise ValueError(
                f'bias.table_PN has {jnp.shape(self.table_PN)[0]} buckets and bias.max_distance is '
                f'{self.max_distance}; accepted: 2 buckets or more (4 where bidirectional), and a '
                'distance above half of those of one side'
            )

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        return _precise(self.table_PN)[self.bucket(distance_D)].T

    def bucket(self, distance_D: jax.Array) -> jax.Array:
        """int32 bucket of each distance: n below e, else min(P - 1, e + floor(ln(n / e) /
        ln(max_distance / e) (P - e))) with n the distance and e = P / 2."""
        size = self._one_side()
        exact = size // 2
        first: jax.Array | int = 0
        if self.bidirectional:
            first = jnp.where(distance_D < 0, size, 0)
            distance_D = jnp.abs(distance_D)
        distance_D = jnp.maximum(distance_D, 0)
        # A distance is a bucket's if it reaches the smallest one of it: exact in integers, where
        # a float32 logarithm may fall short of a whole number.
        edges = [self._smallest(bucket, exact, size) for bucket in range(1, size)]
        passed_D = jnp.sum(distance_D[:, None] >= jnp.asarray(edges), axis=1)
        return jnp.asarray(first + passed_D, jnp.int32)

    def _one_side(self) -> int:
        return jnp.shape(self.table_PN)[0] // (2 if self.bidirectional else 1)

    def _smallest(self, bucket: int, exact: int, size: int) -> int:
        """The smallest distance that belongs to the bucket or to one after it."""
        if bucket <= exact:
            return bucket
        share = (bucket - exact) / (size - exact)
        return math.ceil(exact * (self.max_distance / exact) ** share - 1e-9)


def _precise(parameters: jax.Array) -> jax.Array:
    is_double = jnp.result_type(parameters) == jnp.float64
    return jnp.asarray(parameters, jnp.float64 if is_double else jnp.float32)


Bias = AlibiBias | Buckets


def distances(queries: int, keys: int, offset: int | jax.Array | None) -> jax.Array:
    """int32 [T + S - 1]: all distances, from that of the first query and the last key on."""
    return (0 if offset is None else offset) + jnp.arange(1 - keys, queries, dtype=jnp.int32)


def toeplitz(line: jax.Array, queries: int) -> jax.Array:
    """[..., T + S - 1] -> [..., T, S] with entry (t, s) = line[t - s + S - 1].

    Copies and a reshape, no gather: each row is the one before it moved by one. Linear, and its
    transpose sums over diagonals in the same way.
    """
    size = line.shape[-1]
    keys = size - queries + 1
    # One more entry, so that rows of `size` numbers start one later each time around.
    turned = jnp.concatenate([line[..., ::-1], jnp.zeros_like(line[..., :1])], axis=-1)
    turned = jnp.roll(turned, 1 - queries, axis=-1)
    flat = jnp.tile(turned, (1,) * (line.ndim - 1) + (queries,))
    rows = flat[..., : queries * size].reshape(*line.shape[:-1], queries, size)
    return rows[..., :keys]


def as_array(bias: Bias, queries: int, keys: int, offset: int | jax.Array | None) -> jax.Array:
    """The dense bias [N, T, S]. O(T S) memory: for the reference and for tests."""
    first = 0 if offset is None else offset
    distance_TS = first + jnp.arange(queries)[:, None] - jnp.arange(keys)[None, :]
    return bias.by_distance(distance_TS.reshape(-1)).reshape(-1, queries, keys)
