"""What a position encoding can do: add to the embeddings, turn queries and keys, bias logits.

An encoding overrides the one or two of these that it needs. All are pure functions; a table that
is learned belongs to the model, which hands it back to each of them.
"""

from __future__ import annotations

import dataclasses

import jax

from nope.attention import Bias


@dataclasses.dataclass(frozen=True)
class Table:
    """A learned array of an encoding: its shape, its logical axes, and the standard deviation it
    is drawn with (None: that of the model's matrices)."""

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    stddev: float | None = None


@dataclasses.dataclass(frozen=True)
class Position:
    """An encoding that does nothing; every other one derives from it."""

    @property
    def longest(self) -> int | None:
        """The longest sequence it is defined for; None for any."""
        return None

    @property
    def embeds(self) -> bool:
        """Whether it is added to the embeddings, so that layers cannot differ in it."""
        return False

    @property
    def follows_length(self) -> bool:
        """Whether what a token sees depends on the length of the sequence it is in."""
        return False

    def check(self, head_dim: int) -> None:
        """Raises ValueError where heads of this width cannot have it."""

    def table(self, width: int, heads: int) -> Table | None:
        """The learned array of a model of this width with so many query heads, if any."""
        return None

    def embed(
        self, x_BTD: jax.Array, positions_BT: jax.Array, table: jax.Array | None
    ) -> jax.Array:
        """The embeddings with positions. positions_BT: int32, 0-based, [B, T] or [1, T]."""
        return x_BTD

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Queries and keys with positions, in their dtypes. length: tokens in the sequence."""
        return q_BTNH, k_BTKH

    def bias(self, heads: int, table: jax.Array | None) -> Bias | None:
        """What is added to the logits by distance, for so many query heads."""
        return None

    def describe(self) -> str:
        """A few words for captions and folder names: the kind first, then ', ' and the rest."""
        raise NotImplementedError
