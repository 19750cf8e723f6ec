"""Lambda as a power of the query's position (Beam)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class Power(Relative):
    """p_h(i) = (1 + i / train_length)^r_h. It is above 1 inside train_length already.

    Beam 1.0 (Reflection AI) has it in its layers without position, with r = 0.1 and 2,048 for
    train_length, in all heads alike (read in SGLang's code, which calls it ssmax).
    """

    neutral = 0.0
    published = 0.1
    follows_position = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return jnp.exp(c[0] * jnp.log1p(jnp.asarray(at, jnp.float32) / self.train_length))

    def describe(self) -> str:
        return 'power'
