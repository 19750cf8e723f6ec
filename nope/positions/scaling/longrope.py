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

    multiplier: of queries and keys at every length; None for sqrt(1 + ln(s) / ln(L)), that of an
        extension by s (`longrope_multiplier`).
    factor: s, which the factors of the dimensions do not say.
    """

    short: tuple[float, ...]
    long: tuple[float, ...]
    train_length: int
    multiplier: float | None = None
    factor: float | None = None

    def __post_init__(self) -> None:
        check_positive(train_length=self.train_length)
        for name in ('multiplier', 'factor'):
            if (value := getattr(self, name)) is not None:
                check_positive(**{name: value})
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
        if self.multiplier is not None:
            return
        if self.factor is None:
            rule = 'accepted: a number above 0, or None with a factor, that of the extension'
            raise FieldError('multiplier', None, rule)
        if self.train_length < 2:
            raise FieldError('train_length', self.train_length, 'with a factor it is at least 2')

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        theta = exact(base, dims)
        near, far = (jnp.asarray(theta / np.array(f), jnp.float32) for f in (self.short, self.long))
        return jnp.where(jnp.asarray(length, jnp.float32) > self.train_length, far, near)

    @property
    def attention_factor(self) -> float:
        if self.multiplier is not None:
            return self.multiplier
        assert self.factor is not None  # else `check` has refused it
        return longrope_multiplier(self.factor, self.train_length)

    def describe(self) -> str:
        return ', LongRoPE'


def longrope_multiplier(factor: float, train_length: int) -> float:
    """sqrt(1 + ln(factor) / ln(L)), 1 for a factor of 1 or less."""
    return float(np.sqrt(1 + np.log(max(factor, 1.0)) / np.log(train_length)))
