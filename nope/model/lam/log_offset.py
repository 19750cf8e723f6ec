"""Lambda as the logarithm of the query's position behind an offset (SWAN-GPT)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LogOffset(Relative):
    """p_h(i) = 1 + r_h * (ln(a + i) / ln a - 1), a = share * train_length. It is above 1
    inside train_length already.

    SWAN-GPT (arXiv 2504.08719) applies it to its layers without position at inference, with r = 1.
    It fits a = 362 to a training length of 1,024; `share` keeps that ratio for other lengths. The
    formula and a are from notes on the paper, not compared with its text.
    """

    share: float = 362 / 1024

    neutral = 0.0
    published = 1.0
    follows_position = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 < self.offset < math.inf:
            rule = f'share * train_length ({self.train_length}) must be finite and above 1'
            raise FieldError('share', self.share, rule)

    @property
    def offset(self) -> float:
        """a, in tokens."""
        return self.share * self.train_length

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        log = jnp.log1p(jnp.asarray(at, jnp.float32) / self.offset)  # ln(a + i) - ln a
        return 1.0 + c[0] * (log / math.log(self.offset))

    def describe(self) -> str:
        return 'log-offset'
