"""Lambda that rises by position in steps of the training length (Llama 4, Ministral 3)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogFloor(Relative):
    """p_h(i) = 1 + r_h * ln(1 + floor(i / train_length)), a staircase.

    Llama 4 has it in its layers without position, with r = 0.1 and spans of 8,192. Ministral 3 has
    it in all layers, with spans of 16,384 and i counted from 0. There it is a `GivenLaw`.
    """

    neutral = 0.0
    published = 0.1
    follows_position = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        spans = jnp.asarray(at) // self.train_length
        return 1.0 + c[0] * jnp.log1p(spans.astype(jnp.float32))

    def acts_within(self, length: int) -> bool:
        return length >= self.train_length

    def describe(self) -> str:
        return 'log-floor'
