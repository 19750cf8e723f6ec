"""Softmax temperatures that follow each query: learned, or from the entropy of its weights."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.layers import parameter, project

GAMMA_RANGE = 2.0  # of the power of ln(i + 1), on both sides of 0
# Of e^4 to e^0, and the entropy in nats up to which nothing is sharpened.
ENTROPY_POLYNOMIAL = -0.037, 0.481, -2.3, 4.917, -1.791
ENTROPY_THRESHOLD = 0.5


class AdaptiveTemperature(nn.Module):
    """Adaptive temperature of ASEntmax (Vasylenko et al., 2025, arXiv 2506.16640), of a softmax.

    The query of token i, counted from 1, in head h has the multiplier

        1 + softplus(x_i W_b + b_b) (ln(i + 1))^(2 tanh(x_i W_g + b_g))

    The paper writes delta + beta (ln n)^gamma with n the length of the context; its code, which is
    followed here, takes delta = 1 and n = i + 1, so that no logarithm is 0. The code has no biases
    by default; here they start at 0 and learn. Weights [D, N] and biases [N] of both, and all of
    the computation, are float32. It acts where lambda does (`lam_layers`; in the code on the heads
    without position) and is 1 elsewhere.
    """

    config: ModelConfig

    @nn.compact
    def __call__(
        self, x_BTD: jax.Array, positions_BT: jax.Array, kind: int | jax.Array
    ) -> jax.Array:
        """Multipliers, float32 [B, T, N].

        x_BTD: what queries are projected from. positions_BT: int32, 0-based, [1, T] where all rows
        have the same. kind: of the layer, an index of the config's `kinds`.
        """
        c = self.config
        x_BTD = x_BTD.astype(jnp.float32)
        beta_BTN = jax.nn.softplus(self._linear(x_BTD, 'beta'))
        gamma_BTN = GAMMA_RANGE * jnp.tanh(self._linear(x_BTD, 'gamma'))
        log_BT1 = jnp.log(positions_BT.astype(jnp.float32) + 2.0)[..., None]
        found_BTN = 1.0 + beta_BTN * log_BT1**gamma_BTN
        acts_CN = jnp.stack([jnp.asarray(c.scaled_heads(kind)) for kind in c.kinds])
        return jnp.where(acts_CN[kind], found_BTN, 1.0)

    def _linear(self, x_BTD: jax.Array, name: str) -> jax.Array:
        c = self.config
        shape, axes = (c.width, c.heads), ('embed', 'heads')
        weight_DN = parameter(self, name, initializer(c, 'gate'), shape, axes)
        start = nn.initializers.zeros
        return project(x_BTD, weight_DN) + parameter(
            self, f'{name}_bias', start, shape[1:], axes[1:]
        )


def entropy_multipliers(entropy_BNT: jax.Array) -> jax.Array:
    """Multipliers of logits by the entropy of their softmax, float32 [B, T, N], at least 1.

    Velickovic et al., 2024 (arXiv 2410.01104), adaptive temperature: with e in nats,

        max(1, -0.037 e^4 + 0.481 e^3 - 2.3 e^2 + 4.917 e - 1.791)    where e > 0.5

    and 1 elsewhere; their code names it beta = 1 / theta. It is above 1 between 0.85 and 5.94 nats
    alone: rows that spread over more than about 380 keys stay as they are. entropy_BNT: float32.
    """
    fitted_BNT = jnp.polyval(jnp.asarray(ENTROPY_POLYNOMIAL, jnp.float32), entropy_BNT)
    sharpened_BNT = jnp.maximum(fitted_BNT, 1.0)
    return jnp.where(entropy_BNT > ENTROPY_THRESHOLD, sharpened_BNT, 1.0).swapaxes(1, 2)


def multiplied(multipliers_N: jax.Array, factors_BTN: jax.Array) -> jax.Array:
    """Multipliers p_h, [N], [B, N] or [B, T, N], times factors of every query, [B, T, N]."""
    if multipliers_N.ndim == 2:
        multipliers_N = multipliers_N[:, None]
    return multipliers_N * factors_BTN
