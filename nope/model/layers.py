"""The parts of a block: RMSNorm, attention, SwiGLU. Parameters float32, computation in `dtype`."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.attention import Mask
from nope.model import context, lam
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


def project(x_BTC: jax.Array, weight_CE: jax.Array) -> jax.Array:
    """x @ W with all tokens on one axis, [B, T, E].

    As one plain product XLA's CPU backend needs no transposed copies for the gradient of W
    (twice as fast there; on accelerators the reshapes are free). Where the sequence is
    sharded the merged axis could not be, and the axes stay apart.
    """
    if context.sequence_sharded():
        return x_BTC @ weight_CE
    B, T, C = x_BTC.shape
    return (x_BTC.reshape(B * T, C) @ weight_CE).reshape(B, T, -1)


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
        seen = context.attend(
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
        B, T = x_BTD.shape[:2]
        out_BTC, output_CD = seen.out.reshape(B, T, -1), output_NHD.reshape(-1, c.width)
        return project(out_BTC, output_CD), seen.entropy

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
        projected_BTC = project(x_BTD, weight_DNH.reshape(c.width, -1))
        return projected_BTC.reshape(*x_BTD.shape[:2], heads, c.head_dim)


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
        return project(nn.silu(project(x_BTD, gate_DF)) * project(x_BTD, up_DF), down_FD)
