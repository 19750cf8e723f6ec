"""Lambda as the logarithm of the query's position behind an offset that is searched (HypeNet)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients, Law


@dataclasses.dataclass(frozen=True)
class SearchedOffset(Law):
    """p_h(i) = ln(a_h + i) / ln a_h; the coefficient is ln(a_h - 1), any number. HypeNet's
    code counts i from 0.

    HypeNet (arXiv 2601.22156) fits one a for a model, after training, and uses it in the layers
    without position; 500 of its model of 2 billion parameters is published here. `LogOffset` is
    this law with a fixed a and a searched strength.
    """

    neutral = None
    published = 6.2126061  # ln 499
    follows_position = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        log_offset = jax.nn.softplus(c[0])  # ln a, above 0
        share = jnp.asarray(at, jnp.float32) * jnp.exp(-log_offset)
        return 1.0 + jnp.log1p(share) / log_offset  # ln(a + i) = ln a + ln(1 + i / a)

    def describe(self) -> str:
        return 'searched offset'
