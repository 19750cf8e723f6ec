"""Lambda of InfoScale: the entropy of attention kept as the sequence grows."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class InfoScale(Relative):
    """p_h(n) = ((1 - n^(-2/H)) / (1 - L^(-2/H)))^(r_h / 2) for n >= L = train_length, else 1.

    InfoScale (arXiv 2501.08570) is r = 1, without training. r is an exponent, since p multiplies
    the queries: it stays above 0 for every r. The authors' code does not stop at L: shorter
    sequences get multipliers below 1. Large n end at (1 - L^(-2/H))^(-r/2).
    """

    head_dim: int

    least = 2
    neutral = 0.0
    published = 1.0
    follows_length = True
    acts_inside = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim < 1:
            raise FieldError('head_dim', self.head_dim, 'it must be at least 1')

    def check_head_dim(self, head_dim: int) -> None:
        if head_dim != self.head_dim:
            raise FieldError('head_dim', self.head_dim, f'there are heads of {head_dim} dimensions')

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        n = jnp.maximum(jnp.asarray(at, jnp.float32), float(self.train_length))
        part = -jnp.expm1(-2 / self.head_dim * jnp.log(n))  # 1 - n^(-2/H)
        whole = -jnp.expm1(-2 / self.head_dim * jnp.log(jnp.float32(self.train_length)))
        return jnp.exp(c[0] / 2 * jnp.log(part / whole))

    def describe(self) -> str:
        return 'InfoScale'
