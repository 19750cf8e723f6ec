"""A form of lambda that follows the query's position, for tests alone."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam import Form
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class ByKeys(Form):
    """p_h(i) = 1 + rate * a_h * ln(i + 1): a query at position i sees i + 1 keys."""

    rate: float = 1.0

    neutral = 0.0
    follows_position = True

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise FieldError('rate', self.rate, 'it must be above 0')

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        assert positions_T is not None
        log_T = jnp.log1p(positions_T.astype(jnp.float32))
        return 1.0 + self.rate * coefficients_LN[:, None] * log_T[:, None]

    def describe(self) -> str:
        return 'by keys'
