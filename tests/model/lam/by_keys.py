"""A law of lambda that follows the query's position, for tests alone."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam import Law
from nope.model.lam.base import Coefficients, log_of_keys
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class ByKeys(Law):
    """p_h(i) = 1 + rate * a_h * ln(i + 1): a query at position i sees i + 1 keys."""

    rate: float = 1.0

    neutral = 0.0
    follows_position = True

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise FieldError('rate', self.rate, 'it must be above 0')

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return 1.0 + self.rate * c[0] * log_of_keys(at)

    def describe(self) -> str:
        return 'by keys'
