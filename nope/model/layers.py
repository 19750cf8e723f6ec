"""The parts of a block: RMSNorm, attention, SwiGLU. Parameters float32, computation in `dtype`."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.attention import AttentionOutput, Mask, attention
from nope.model import lam
from nope.model.config import ModelConfig


def parameter(
    module: nn.Module,
    name: str,
    initializer: jax.nn.initializers.Initializer,
    shape: tuple[int, ...],
    axes: tuple[str, ...],
    dtype: str = 'float32',
) -> jax.Array:
    """A float32 parameter with logical axis names, read in `dtype`."""
    boxed = nn.with_logical_partitioning(initializer, axes)
    return jnp.asarray(module.param(name, boxed, shape, jnp.float32), dtype)


def weight_initializer(config: ModelConfig) -> jax.nn.initializers.Initializer:
    """N(0, sqrt(2 / (5 D))), for every matrix but those that write to the residual stream."""
    return nn.initializers.normal((2 / (5 * config.width)) ** 0.5)


def residual_initializer(config: ModelConfig) -> jax.nn.initializers.Initializer:
    """N(0, 1 / (sqrt(D) * layers)), for the output projections of attention and MLP."""
    return nn.initializers.normal(1 / (config.width**0.5 * config.layers))


class RMSNorm(nn.Module):
    """y = x * rsqrt(mean(x^2) + eps) * w, statistics in float32."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        weight_D = parameter(self, 'scale', nn.initializers.ones, (self.config.width,), ('norm',))
        x32_BTD = x_BTD.astype(jnp.float32)
        mean_square = jnp.mean(jnp.square(x32_BTD), axis=-1, keepdims=True)
        normed = x32_BTD * jax.lax.rsqrt(mean_square + self.config.norm_epsilon) * weight_D
        return normed.astype(self.config.dtype)


class SelfAttention(nn.Module):
    """Grouped-query self-attention; lambda multiplies the queries after the position encoding."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        x_BTD: jax.Array,
        multiples_N: jax.Array,
        mask: Mask,
        positions_BT: jax.Array,
        length: int | jax.Array,
        entropy: bool,
    ) -> tuple[jax.Array, jax.Array | None]:
        """Returns the layer's output [B, T, D] and the entropy [B, N, T] in nats, or None."""
        c = self.config
        q_BTNH = self._project(x_BTD, 'query', c.heads, 'heads')
        k_BTKH = self._project(x_BTD, 'key', c.kv_heads, 'kv_heads')
        v_BTKH = self._project(x_BTD, 'value', c.kv_heads, 'kv_heads')
        q_BTNH, k_BTKH = c.position.encode(q_BTNH, k_BTKH, positions_BT, length)
        seen: AttentionOutput = attention(
            lam.scale_queries(q_BTNH, multiples_N),
            k_BTKH,
            v_BTKH,
            mask=mask,
            entropy=entropy,
            implementation=c.attention or None,
        )
        output_NHD = parameter(
            self,
            'output',
            residual_initializer(c),
            (c.heads, c.head_dim, c.width),
            ('heads', 'head_dim', 'embed'),
            c.dtype,
        )
        return jnp.einsum('BTNH,NHD->BTD', seen.out, output_NHD), seen.entropy

    def _project(self, x_BTD: jax.Array, name: str, heads: int, axis: str) -> jax.Array:
        c = self.config
        weight_DNH = parameter(
            self,
            name,
            weight_initializer(c),
            (c.width, heads, c.head_dim),
            ('embed', axis, 'head_dim'),
            c.dtype,
        )
        return jnp.einsum('BTD,DNH->BTNH', x_BTD, weight_DNH)


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BTD: jax.Array) -> jax.Array:
        c = self.config
        shape, axes = (c.width, c.mlp_width), ('embed', 'mlp')
        gate_DF = parameter(self, 'gate', weight_initializer(c), shape, axes, c.dtype)
        up_DF = parameter(self, 'up', weight_initializer(c), shape, axes, c.dtype)
        down_FD = parameter(self, 'down', residual_initializer(c), shape[::-1], axes[::-1], c.dtype)
        return (nn.silu(x_BTD @ gate_DF) * (x_BTD @ up_DF)) @ down_FD
