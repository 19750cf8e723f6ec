"""Lambda that grows with the logarithm of the query's position beyond the training length."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.relative import Relative, keys_seen


@dataclasses.dataclass(frozen=True)
class LogPosition(Relative):
    """p_h(i) = 1 + r_h * ln(max(i / train_length, 1)), i the keys that a query sees (its position
    counted from 1): the base model itself up to train_length, wherever the sequence ends.

    The temperature of Inkling's global layers, whose code takes r = 0.1 (published here) and
    128,000 for train_length and scales the bias by distance too, which lambda does not.
    train_length = 1 is 1 + r ln i. Llama 4's is a staircase (`LogFloor`), Grok-2's the same with r
    = 1 / ln(train_length) (`LogRatioPosition`).
    """

    neutral = 0.0
    published = 0.1
    follows_position = True
    acts_inside = False

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        log_T = self.log_beyond(keys_seen(positions_T))
        return 1.0 + coefficients_LN[:, None] * log_T[:, None]

    def describe(self) -> str:
        return 'log-position'
