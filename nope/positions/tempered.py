"""NoPE with a temperature that grows with the query's position (Llama 4)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.positions.none import NoPE
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class TemperedNoPE(NoPE):
    """q_i * (1 + rate * ln(floor((i + 1) / span) + 1)), i from 0: the temperature of the layers
    without rotation in Llama 4. Up to span - 1 tokens it is NoPE."""

    rate: float = 0.1
    span: int = 8192

    def __post_init__(self) -> None:
        if not 1 <= self.span <= 2**30:
            raise FieldError('span', self.span, 'accepted: 1 to 2**30')
        if not math.isfinite(self.rate):
            raise FieldError('rate', self.rate, 'it must be finite')

    def multipliers(self, positions_BT: jax.Array) -> jax.Array:
        """The factor at every position, float32."""
        spans_BT = (positions_BT + 1) // self.span
        return 1.0 + self.rate * jnp.log1p(spans_BT.astype(jnp.float32))

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Queries multiplied by `multipliers`, keys unchanged; products in float32."""
        factor = self.multipliers(positions_BT)[..., None, None]
        return (q_BTNH.astype(jnp.float32) * factor).astype(q_BTNH.dtype), k_BTKH

    def describe(self) -> str:
        return 'none, tempered'
