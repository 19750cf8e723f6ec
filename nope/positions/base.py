"""Base class for position encodings: added to embeddings, applied to queries and keys, or a bias.

An encoding overrides the one or two methods that it needs. All are pure functions; learned tables
and gates belong to the model, which passes the table to `embed` and to `bias`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import jax
import numpy as np

from nope.attention import Bias


@dataclasses.dataclass(frozen=True)
class Table:
    """A learned array of an encoding. It is normal with `stddev` (None: that of the model's
    matrices), unless it has an initializer `draw(key, shape, dtype)`.

    neutral: whether an array of zeros is no position encoding, so that a trained model can get it.
    Tables are equal where they hold the same, however they are drawn at first.
    """

    shape: tuple[int, ...]
    axes: tuple[str, ...]
    stddev: float | None = None
    draw: Callable[..., jax.Array] | None = dataclasses.field(default=None, compare=False)
    neutral: bool = False


@dataclasses.dataclass(frozen=True)
class Gate:
    """Forget gates of the first `heads` query heads of every layer (`nope.positions.forget`), whose
    bias starts at `start`."""

    heads: int
    start: float


@dataclasses.dataclass(frozen=True)
class Position:
    """Neutral position encoding, from which every other one derives.

    two_sided: whether it is defined for keys after the query too, as encoders have them.
    """

    two_sided: ClassVar[bool] = False

    @property
    def longest(self) -> int | None:
        """Maximum sequence length in tokens; None where there is none."""
        return None

    @property
    def embeds(self) -> bool:
        """Whether the encoding is added to the embeddings, in which layers cannot differ."""
        return type(self).embed is not Position.embed

    @property
    def takes_positions(self) -> bool:
        """True for an encoding of positions, which may be any numbers in ascending order, and not
        of the distances between keys."""
        return False

    @property
    def follows_length(self) -> bool:
        """True for an encoding that depends on the sequence length, not on positions alone."""
        return False

    @property
    def local_window(self) -> int | None:
        """Keys that the heads with the encoding see, where those without it see more; None where
        all heads see alike."""
        return None

    def check(self, head_dim: int) -> None:
        """Raises FieldError, of `head_dim` or of a field of its own, for a head dim that the
        encoding does not support."""

    def check_heads(self, heads: int, kv_heads: int) -> None:
        """FieldError for numbers of heads that the encoding does not support."""

    def local_heads(self, heads: int) -> int:
        """Number of query heads, the first ones, that have the encoding."""
        return heads

    def without_position(self, heads: int) -> np.ndarray:
        """Mask of the query heads that have no position encoding, bool [heads]."""
        return np.arange(heads) >= self.local_heads(heads)

    def table(self, width: int, heads: int) -> Table | None:
        """Learned array for a model of this width with this many query heads, or None."""
        return None

    def gate(self, heads: int) -> Gate | None:
        """Forget gates of a layer with this many query heads, or None."""
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
        """Attention bias by distance for this many query heads, or None."""
        return None

    def describe(self) -> str:
        """A few words for captions and folder names: the kind first, then ', ' and the rest."""
        raise NotImplementedError
