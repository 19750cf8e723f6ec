"""Forget gates of a layer: what the gates between two tokens leave, summed as logarithms."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.cache import LayerCache
from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.parameters import parameter, project
from nope.positions import Gate


class ForgetGates(nn.Module):
    """ln sigmoid(x W + b) of every gated head. W [D, heads], b [heads]; the logarithm in float32,
    since sums of it over a long sequence must not lose a token's share."""

    config: ModelConfig
    gate: Gate

    @nn.compact
    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        """float32 [B, T, heads], at most 0. x_BTD: what queries and keys are projected from."""
        c, gate = self.config, self.gate
        shape, axes = (c.width, gate.heads), ('embed', 'heads')
        weight_DN = parameter(self, 'weight', initializer(c, 'gate'), shape, axes, c.dtype)
        start = nn.initializers.constant(gate.start)
        bias_N = parameter(self, 'bias', start, axes=('heads',), shape=(gate.heads,))
        return jax.nn.log_sigmoid(project(x_BTD, weight_DN).astype(jnp.float32) + bias_N)


def forgotten(
    log_gates_BTN: jax.Array,
    cached: LayerCache | None,
    slot: int | jax.Array | None,
    segments_BT: jax.Array | None = None,
) -> jax.Array:
    """c_t, the sum of all logarithms up to token t, float32 [B, T, N]: between key j and query i
    gates leave exp(c_i - c_j).

    cached, slot: the sums of earlier tokens, and the slot of the first token here. segments_BT:
    beside a cache, 0 for padding before a row. Gates of padding count as open: long sums of unseen
    tokens would leave those of the row no digits.
    """
    if cached is not None and segments_BT is not None:
        log_gates_BTN = jnp.where((segments_BT > 0)[..., None], log_gates_BTN, 0.0)
    sums_BTN = jnp.cumsum(log_gates_BTN, axis=1)
    if cached is None or cached.forgotten_BSN1 is None:
        return sums_BTN
    assert slot is not None
    last_B1N1 = jax.lax.dynamic_slice_in_dim(
        cached.forgotten_BSN1, jnp.maximum(jnp.asarray(slot) - 1, 0), 1, axis=1
    )
    return sums_BTN + jnp.where(jnp.asarray(slot) > 0, last_B1N1[..., 0], 0.0)
