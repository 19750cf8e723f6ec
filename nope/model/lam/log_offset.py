"""Lambda as the logarithm of the query's position behind an offset (SWAN-GPT)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.model.lam.relative import Relative, keys_seen
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LogOffset(Relative):
    """p_h(i) = 1 + r_h * (ln(a + i) / ln a - 1), a = share * train_length, i the keys that a query
    sees (its position counted from 1): above 1 inside train_length already.

    SWAN-GPT (arXiv 2504.08719) applies it to its layers without position at inference, r = 1, with
    a = 362 fitted for a training length of 1,024 on 200 documents. An a of so many tokens says
    nothing about another length; `share` keeps its ratio to the training length. The formula and a
    are from notes on the paper, not compared with its text.
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

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        log_T = jnp.log1p(keys_seen(positions_T) / self.offset)  # ln(a + i) - ln a
        return 1.0 + coefficients_LN[:, None] * (log_T / math.log(self.offset))[:, None]

    def describe(self) -> str:
        return 'log-offset'
