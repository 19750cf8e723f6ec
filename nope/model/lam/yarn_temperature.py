"""Lambda of YaRN: the temperature of extended RoPE models, without their rotation."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class YarnTemperature(Relative):
    """p_h(n) = (1 + r_h * ln(max(n / train_length, 1)))^2.

    YaRN (arXiv 2309.00071) divides logits by a temperature t that was fitted for LLaMA: sqrt(1 / t)
    = 0.1 ln(s) + 1. Its factor s is the same for all lengths. Here s is n / train_length and
    follows the sequence.
    """

    neutral = 0.0
    published = 0.1
    follows_length = True
    acts_inside = False

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return jnp.square(1.0 + c[0] * self.log_beyond(at))

    def describe(self) -> str:
        return 'YaRN temperature'
