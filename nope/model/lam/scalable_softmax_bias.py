"""Lambda of Scalable-Softmax with a bias: a line in the logarithm of the number of keys."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.model.lam.base import Form


@dataclasses.dataclass(frozen=True)
class ScalableSoftmaxBias(Form):
    """p_h(i) = s_h * ln i + b_h, i the keys that a query sees (its position counted from 1);
    coefficients (s_h, b_h).

    The variant of SSMax (arXiv 2501.19399) with a bias, trained with the weights, which by that
    paper helps training and can hurt at length. s = 0, b = 1 is the base model, from which a search
    starts; with s = 0 it is HeadScale.
    """

    numbers = 2
    neutral = (0.0, 1.0)
    follows_position = True

    def multipliers(
        self,
        coefficients_LN: jax.Array,
        length: int | jax.Array,
        positions_T: jax.Array | None = None,
    ) -> jax.Array:
        assert positions_T is not None
        log_T = jnp.log1p(positions_T.astype(jnp.float32))
        s_LN, b_LN = coefficients_LN[..., 0], coefficients_LN[..., 1]
        return s_LN[:, None] * log_T[:, None] + b_LN[:, None]

    def describe(self) -> str:
        return 'scalable softmax with a bias'
