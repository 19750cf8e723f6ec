"""Lambda as the ratio of the logarithms of the query's position and the training length."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.model.lam.base import Form
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LogRatioPosition(Form):
    """p_h(i) = 1 + r_h * (max(1, ln i / ln(train_length)) - 1), i the keys that a query sees (its
    position counted from 1).

    Qwen's LogN attention and Grok-2's temperature (train_length 1,024), both published at r = 1 for
    all heads. SGLang's code for Grok-2 takes the position counted from 0, i - 1, in place of i.
    With a searched r it is `LogPosition`, whose coefficient is r / ln(train_length).
    """

    train_length: int

    neutral = 0.0
    published = 1.0
    follows_position = True

    def __post_init__(self) -> None:
        if self.train_length < 2:
            raise FieldError('train_length', self.train_length, 'it must be at least 2')

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        assert positions_T is not None
        keys_T = positions_T.astype(jnp.float32) + 1.0
        log_T = jnp.log(jnp.maximum(keys_T / self.train_length, 1.0))
        return 1.0 + coefficients_LN[:, None] * (log_T / math.log(self.train_length))[:, None]

    def describe(self) -> str:
        return 'log-ratio by position'
