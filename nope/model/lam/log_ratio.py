"""Lambda as the ratio of the logarithms of the sequence's length and the training length."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogRatio(Relative):
    """p_h(n) = 1 + r_h * (ln n / ln(train_length) - 1), for n >= train_length; 1 below it.

    inside: whether lengths below train_length have it too, with multipliers below 1, as models
        trained with it (GAU-alpha's `softmax_plus`, train_length 512).

    Su Jianlin's log-n attention, which keeps the entropy level; r = 1 for all heads. Chiang and
    Cholak (arXiv 2202.12172, section 4.3) multiply by ln n alone, ln(train_length) times as much,
    in models trained with it. With a searched r and without `inside` it is `LogLength`, whose
    coefficient is r / ln(train_length).
    """

    inside: bool = False

    least = 2
    neutral = 0.0
    published = 1.0
    follows_length = True

    @property
    def acts_inside(self) -> bool:  # type: ignore[override]
        return self.inside

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        log = jnp.log(jnp.asarray(at, jnp.float32) / self.train_length)
        if not self.inside:
            log = jnp.maximum(log, 0.0)
        return 1.0 + c[0] * (log / math.log(self.train_length))

    def describe(self) -> str:
        return 'log-ratio'
