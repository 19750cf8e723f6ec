"""Lambda with two numbers a head: linear and quadratic in the logarithm of the length."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.base import Coefficients
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

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        x = self.log_beyond(at)
        return 1.0 + c[0] * x + c[1] * x**2

    def describe(self) -> str:
        return 'log-square'
