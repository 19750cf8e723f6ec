"""Lambda of Scalable-Softmax with a bias: a line in the logarithm of the number of keys."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.base import Coefficients, Law, log_of_keys


@dataclasses.dataclass(frozen=True)
class ScalableSoftmaxBias(Law):
    """p_h(i) = s_h * ln i + b_h; coefficients (s_h, b_h).

    SSMax (arXiv 2501.19399) with a bias, trained with the weights. The paper says it helps
    training and can hurt at length. A search starts from the base model, s = 0 and b = 1.
    """

    numbers = 2
    neutral = (0.0, 1.0)
    follows_position = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return c[0] * log_of_keys(at) + c[1]

    def describe(self) -> str:
        return 'scalable softmax with a bias'
