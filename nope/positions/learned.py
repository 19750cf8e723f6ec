"""A learned vector for every position, added to the embeddings."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.positions.base import Position, Table
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Learned(Position):
    """Row t of a learned table [size, D] at position t; there are no positions from `size` on."""

    size: int = 2048

    two_sided = True

    def __post_init__(self) -> None:
        if self.size < 1:
            raise FieldError('size', self.size, 'it must be at least 1')

    @property
    def longest(self) -> int | None:
        return self.size

    @property
    def takes_positions(self) -> bool:
        return True

    def table(self, width: int, heads: int) -> Table:
        return Table((self.size, width), ('positions', 'embed'), neutral=True)

    def embed(
        self, x_BTD: jax.Array, positions_BT: jax.Array, table: jax.Array | None
    ) -> jax.Array:
        assert table is not None
        return x_BTD + jnp.take(table, positions_BT, axis=0).astype(x_BTD.dtype)

    def describe(self) -> str:
        return 'learned'
