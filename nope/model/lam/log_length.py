"""Lambda that grows with the logarithm of the sequence's length."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogLength(Relative):
    """p_h(n) = 1 + a_h * ln(max(n / train_length, 1)): the base model itself up to train_length.

    The law that the best uniform multipliers follow (arXiv 2404.12224, appendix B), one a head.
    Published: its fit for NoPE after 50,000 steps, a = 0.3973 with L = 2,048.
    """

    neutral = 0.0
    published = 0.3973
    follows_length = True
    acts_inside = False

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return 1.0 + c[0] * self.log_beyond(at)

    def describe(self) -> str:
        return 'log-length'
