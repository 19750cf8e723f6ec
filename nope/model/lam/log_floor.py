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

    Llama 4 has it in its layers without position (published r = 0.1, spans of 8,192), Ministral 3
    in all (r = 0.1, spans of 16,384, and i counted from 0). Such a law that nothing searches is a
    `GivenLaw`.
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
