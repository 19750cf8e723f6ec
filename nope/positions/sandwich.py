"""Products of sinusoidal position vectors as a bias (Sandwich)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention import SandwichBias
from nope.positions.base import Position
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Sandwich(Position):
    """N / (8 h) p_i . p_j, added to the logits of head h = 1 .. N: the product of the sinusoidal
    vectors of both positions, sum_k cos((i - j) / base^(2k / dims)), k = 0 .. dims / 2 - 1 (Chi et
    al., 2023, arXiv 2212.10356), less dims / 2, which all logits of a query share.

    The paper's sum counts k from 1. Its code counts from 0, as sinusoidal encodings do and as here.
    NVIDIA NeMo's counts from 1 to dims / 2 - 1 and leaves the cosine out.

    dims: of the position vectors; it need not be the model's width.
    """

    dims: int = 128
    base: float = 10_000.0

    def __post_init__(self) -> None:
        if self.dims < 2 or self.dims % 2:
            raise FieldError('dims', self.dims, 'accepted: even numbers, at least 2')
        if not (math.isfinite(self.base) and self.base > 0):
            raise FieldError('base', self.base, 'it must be finite and above 0')

    def scales(self, heads: int) -> np.ndarray:
        """N / (8 h), float64 [heads]."""
        return heads / (8 * np.arange(1, heads + 1))

    def bias(self, heads: int, table: jax.Array | None) -> SandwichBias:
        return SandwichBias(jnp.asarray(self.scales(heads), jnp.float32), self.dims, self.base)

    def describe(self) -> str:
        return 'Sandwich'
