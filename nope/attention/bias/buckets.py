"""Bias that is learned for each bucket of distances (T5)."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from nope.attention.bias.base import Bias, precise


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=('table_PN',), meta_fields=('max_distance',)
)
@dataclasses.dataclass(frozen=True)
class Buckets(Bias):
    """A learned number per head and bucket of distances (T5; Raffel et al., 2020,
    arXiv:1910.10683).

    table_PN: float, [P, N], P buckets. Distances below half of the buckets have one each, those
        above share the other half logarithmically, up to `max_distance` and all beyond it. Keys
        after the query count as distance 0.
    """

    table_PN: jax.Array
    max_distance: int = 128

    @property
    def heads(self) -> int:
        return jnp.shape(self.table_PN)[1]

    def check(self) -> None:
        """Raises ValueError for a table without enough buckets."""
        if jnp.ndim(self.table_PN) != 2:
            raise ValueError(f'bias.table_PN has shape {jnp.shape(self.table_PN)}, expected [P, N]')
        exact = jnp.shape(self.table_PN)[0] // 2
        if exact < 1 or self.max_distance <= exact:
            raise ValueError(
                f'bias.table_PN has {jnp.shape(self.table_PN)[0]} buckets and bias.max_distance is '
                f'{self.max_distance}; accepted: 2 buckets or more, and a distance above half of '
                'them'
            )

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        return precise(self.table_PN)[self.bucket(distance_D)].T

    def bucket(self, distance_D: jax.Array) -> jax.Array:
        """int32 bucket of each distance: n below e, else min(P - 1, e + floor(ln(n / e) /
        ln(max_distance / e) (P - e))) with n the distance and e = P / 2."""
        size = jnp.shape(self.table_PN)[0]
        exact = size // 2
        distance_D = jnp.maximum(distance_D, 0)
        # A distance is a bucket's if it reaches the smallest one of it: exact in integers, where
        # a float32 logarithm may fall short of a whole number.
        edges = [self._smallest(bucket, exact, size) for bucket in range(1, size)]
        passed_D = jnp.sum(distance_D[:, None] >= jnp.asarray(edges), axis=1)
        return jnp.asarray(passed_D, jnp.int32)

    def _smallest(self, bucket: int, exact: int, size: int) -> int:
        """The smallest distance that belongs to the bucket or to one after it."""
        if bucket <= exact:
            return bucket
        share = (bucket - exact) / (size - exact)
        return math.ceil(exact * (self.max_distance / exact) ** share - 1e-9)
