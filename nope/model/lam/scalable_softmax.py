"""Lambda of Scalable-Softmax: the logarithm of the query's position."""

from __future__ import annotations

import dataclasses

import jax

from nope.model.lam.base import Coefficients, Law, log_of_keys


@dataclasses.dataclass(frozen=True)
class ScalableSoftmax(Law):
    """p_h(i) = s_h * ln i. The paper has the number of keys: i, but in layers with a window.

    SSMax (arXiv 2501.19399), s trained with the weights; published here is 0.43, what the paper's
    figure 1 and axolotl take. Others begin at 1 (OLMo-core), N(1, 0.01) (ASEntmax's code) or 1 /
    mean(ln i), which keeps the mean multiplier at 1 (0.168 for L = 1,024). No s is the plain
    softmax. At i = 1 p is 0, which changes nothing: a single key has weight 1 (OLMo-core takes ln 1
    too, axolotl ln 2).
    """

    neutral = None
    published = 0.43
    follows_position = True

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        return c[0] * log_of_keys(at)

    def describe(self) -> str:
        return 'scalable softmax'
