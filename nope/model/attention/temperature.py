"""Softmax temperature of every query: learned, or from the entropy of its attention."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model import lam
from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.kinds import LayerKind
from nope.model.parameters import parameter, project


class AdaptiveTemperature(nn.Module):
    """Multipliers of `lam.adaptive_multipliers`, with beta and gamma linear in the query's input.

    The paper's code has no biases by default; here they start at 0 and learn. Weights [D, N],
    biases [N] and the computation are float32. The module acts where lambda does (`lam_layers`; in
    the code on the heads without position) and is 1 elsewhere.
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
        beta_BTN, gamma_BTN = self._linear(x_BTD, 'beta'), self._linear(x_BTD, 'gamma')
        found_BTN = lam.adaptive_multipliers(beta_BTN, gamma_BTN, positions_BT)
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


def entropy_temperature(config: ModelConfig, kind: LayerKind, entropy_BNT: jax.Array) -> jax.Array:
    """Multipliers of `lam.entropy_multipliers` where lambda acts and 1 elsewhere, float32
    [B, T, N], from the entropy of the attention without them."""
    acts_N = jnp.asarray(config.scaled_heads(kind))
    return jnp.where(acts_N, lam.entropy_multipliers(entropy_BNT), 1.0)
