"""Lambda of YaRN: the temperature of extended rotary models, without their rotation."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class YarnTemperature(Relative):
    """p_h(n) = (1 + r_h * ln(max(n / train_length, 1)))^2.

    YaRN (arXiv 2309.00071) divides logits by t with sqrt(1 / t) = 0.1 ln(s) + 1, fitted for LLaMA
    with a fixed factor s for all lengths; its code multiplies queries and keys by sqrt(1 / t) each.
    Here s is n / train_length, which follows the sequence.
    """

    neutral = 0.0
    published = 0.1
    follows_length = True
    acts_inside = False

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        return jnp.square(1.0 + coefficients_LN * self.log_beyond(length))

    def describe(self) -> str:
        return 'YaRN temperature'
