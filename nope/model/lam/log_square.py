"""Lambda with two numbers a head: linear and quadratic in the logarithm of the length."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogSquare(Relative):
    """p_h(n) = 1 + a_h * x + b_h * x^2, x = ln(max(n / train_length, 1)); coefficients (a_h, b_h).

    `LogLength` with a second number. How a head's critical multiplier grows lies between sqrt(ln n)
    and (ln n)^2, by how many keys lie near its maximum (arXiv 2605.12697): a and b of either sign
    bend the curve both ways.
    """

    numbers = 2
    neutral = 0.0
    follows_length = True
    acts_inside = False

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        x = self.log_beyond(length)
        return 1.0 + coefficients_LN[..., 0] * x + coefficients_LN[..., 1] * x**2

    def describe(self) -> str:
        return 'log-square'
