"""Lambda that grows with the logarithm of the query's position beyond the training length."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.base import Coefficients
from nope.model.lam.relative import Relative


@dataclasses.dataclass(frozen=True)
class LogPosition(Relative):
    """p_h(i) = 1 + r_h * ln(max(i / train_length, 1)), wherever the sequence ends. Up to
    train_length it is the base model itself.

    Inkling's global layers have it, with r = 0.1 and train_length 128,000. Their code scales the
    bias by distance too, which lambda does not. A train_length of 1 gives 1 + r ln i.
    `LogRatioPosition`, Grok-2's law, is the same with another unit of r.
    """

    neutral = 0.0
    published = 0.1
    follows_position = True
    acts_inside = False

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return 1.0 + c[0] * self.log_beyond(at)

    def describe(self) -> str:
        return 'log-position'
