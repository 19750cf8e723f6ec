"""Lambda that grows with the logarithm of the sequence's length."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Form
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LogLength(Form):
    """p_h(n) = 1 + a_h * ln(max(n / train_length, 1)): the base model itself up to train_length.

    The law that the best uniform multipliers follow (arXiv 2404.12224, appendix B), one a head.
    Published: its fit for NoPE after 50,000 steps, a = 0.3973 with L = 2,048.
    """

    train_length: int

    neutral = 0.0
    published = 0.3973
    follows_length = True

    def __post_init__(self) -> None:
        if self.train_length < 1:
            raise FieldError('train_length', self.train_length, 'it must be at least 1')

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        relative = jnp.asarray(length, jnp.float32) / self.train_length
        return 1.0 + coefficients_LN * jnp.log(jnp.maximum(relative, 1.0))

    def describe(self) -> str:
        return 'log-length'
