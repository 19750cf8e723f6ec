"""Lambda that rises by position in steps of the training length (Llama 4, Ministral 3)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogFloor(Relative):
    """p_h(i) = 1 + r_h * ln(1 + floor(i / train_length)), i the keys that a query sees (its
    position counted from 1): a staircase, 1 below train_length keys.

    The temperature of Llama 4's layers without position (published r = 0.1, spans of 8,192). The
    code of Ministral 3 takes the position counted from 0, i - 1, in place of i (r = 0.1, 16,384).
    As an encoding, with a rate for all heads that is not searched, it is
    `nope.positions.TemperedNoPE`, and with rotation `nope.positions.Rotary`.
    """

    neutral = 0.0
    published = 0.1
    follows_position = True

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        assert positions_T is not None
        spans_T = (positions_T + 1) // self.train_length
        return 1.0 + coefficients_LN[:, None] * jnp.log1p(spans_T.astype(jnp.float32))[:, None]

    def acts_within(self, length: int) -> bool:
        return length >= self.train_length

    def describe(self) -> str:
        return 'log-floor'
