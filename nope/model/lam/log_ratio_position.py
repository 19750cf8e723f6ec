"""Lambda as the ratio of the logarithms of the query's position and the training length."""

from __future__ import annotations

import dataclasses
import math

import jax

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogRatioPosition(Relative):
    """p_h(i) = 1 + r_h * (max(1, ln i / ln(train_length)) - 1).

    Qwen's LogN attention and Grok-2's temperature (train_length 1,024), both published at r = 1 for
    all heads. SGLang's code for Grok-2 takes the position counted from 0, i - 1, in place of i.
    With a searched r it is `LogPosition`, whose coefficient is r / ln(train_length).
    """

    least = 2
    neutral = 0.0
    published = 1.0
    follows_position = True
    acts_inside = False

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return 1.0 + c[0] * (self.log_beyond(at) / math.log(self.train_length))

    def describe(self) -> str:
        return 'log-ratio by position'
