"""T5's relative bias (Raffel et al., 2020, arXiv 1910.10683), one table for all layers."""

from __future__ import annotations

import dataclasses

import jax

from nope.attention import Buckets
from nope.positions.base import Position, Table
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class T5Bias(Position):
    """A learned number per head and bucket of distances, added to the logits.

    buckets: the first half holds one distance each, the other half shares the rest
    logarithmically up to `max_distance`; all beyond it are in the last one.
    """

    buckets: int = 32
    max_distance: int = 128

    def __post_init__(self) -> None:
        if self.buckets < 2:
            raise FieldError('buckets', self.buckets, 'it must be at least 2')
        if self.max_distance <= self.buckets // 2:
            raise FieldError(
                'max_distance',
                self.max_distance,
                f'it must be above half of buckets, {self.buckets // 2}',
            )

    def table(self, width: int, heads: int) -> Table:
        """[buckets, heads], drawn as the authors do: N(0, D^-1/2)."""
        return Table((self.buckets, heads), ('buckets', 'heads'), width**-0.5, neutral=True)

    def bias(self, heads: int, table: jax.Array | None) -> Buckets:
        assert table is not None
        return Buckets(table, self.max_distance)

    def describe(self) -> str:
        return 'T5 bias'
