"""LongRoPE (Ding et al., 2024, arXiv 2402.13753): a factor of its own for every dimension."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.positions.scaling.base import Scaling, check_positive, exact
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class LongRoPE(Scaling):
    """theta_j / short_j for n <= L and theta_j / long_j beyond.

    multiplier: of queries and keys at every length: sqrt(1 + ln(s) / ln(L)) for an extension by
    s (`longrope_multiplier`).
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    train_length: int
    multiplier: float = 1.0

    def __post_init__(self) -> None:
        check_positive(train_length=self.train_length, multiplier=self.multiplier)
        for name in ('short', 'long'):
            for factor in getattr(self, name):
                check_positive(**{name: factor})

    @property
    def follows_length(self) -> bool:
        return True

    def check(self, dims: int) -> None:
        for name in ('short', 'long'):
            factors = getattr(self, name)
            if len(factors) != dims // 2:
                rule = f'{dims} rotated dimensions take {dims // 2} factors, not {len(factors)}'
                raise FieldError(name, factors, rule)

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        theta = exact(base, dims)
        near, far = (jnp.asarray(theta / np.array(f), jnp.float32) for f in (self.short, self.long))
        return jnp.where(jnp.asarray(length, jnp.float32) > self.train_length, far, near)

    def attention_factor(self, length: int | jax.Array) -> float:
        return self.multiplier

    def describe(self) -> str:
        return ', LongRoPE'


def longrope_multiplier(factor: float, train_length: int) -> float:
    """sqrt(1 + ln(factor) / ln(L)), 1 for a factor of 1 or less."""
    return float(np.sqrt(1 + np.log(max(factor, 1.0)) / np.log(train_length)))
