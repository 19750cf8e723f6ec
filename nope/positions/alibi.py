"""Attention with linear biases (Press et al., 2022, arXiv 2108.12409)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention import AlibiBias
from nope.positions.base import Position
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Alibi(Position):
    """-m_h * (query position - key position), added to the logits of head h.

    Slopes are 2 ** (-max_exponent * h / N), h = 1 .. N, for a power of two of heads. Otherwise
    those of the power below, and after them every second one of the list for twice that power:
    BLOOM's rule. MPT takes the even and then the odd entries of the longer list, which are the
    same numbers in the same order.

    harmonic: 1 / h in their place, the slopes of NAPE (ASEntmax, arXiv 2506.16640).

    BLOOM adds m_h * key position, MPT m_h * (key position - last position): Both differ from the
    bias here by a number for each query, which the softmax removes.
    """

    max_exponent: float = 8.0
    harmonic: bool = False

    two_sided = True

    def __post_init__(self) -> None:
        if not 0 < self.max_exponent < 1000:
            raise FieldError('max_exponent', self.max_exponent, 'accepted: above 0, below 1000')
        if self.harmonic and self.max_exponent != type(self).max_exponent:
            rule = 'harmonic slopes are 1 / h and have none'
            raise FieldError('max_exponent', self.max_exponent, rule)

    def slopes(self, heads: int) -> np.ndarray:
        """m_h, float64 [heads]."""
        if self.harmonic:
            return 1.0 / np.arange(1, heads + 1)
        power = 2 ** (heads.bit_length() - 1)
        own = self._geometric(power)
        return np.concatenate([own, self._geometric(2 * power)[::2]])[:heads]

    def _geometric(self, heads: int) -> np.ndarray:
        return 2.0 ** (-self.max_exponent * np.arange(1, heads + 1) / heads)

    def bias(self, heads: int, table: jax.Array | None) -> AlibiBias:
        return AlibiBias(jnp.asarray(self.slopes(heads), jnp.float32))

    def describe(self) -> str:
        return 'ALiBi, slopes 1 / h' if self.harmonic else 'ALiBi'
