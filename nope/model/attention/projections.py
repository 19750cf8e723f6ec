"""Queries, keys and values of a layer before positions, and its output projection."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.layers import Norm, unit_norm
from nope.model.parameters import bias, parameter, project


def queries(
    module: nn.Module, config: ModelConfig, x_BTD: jax.Array, kind: int | jax.Array
) -> jax.Array:
    """[B, T, N, H] in the model's dtype, after QK-norm. module: whose parameters these are. kind:
    index of the layer's kind, an int if known."""
    q_BTNH = _projected(module, config, x_BTD, 'query', config.heads, 'heads')
    return _normed(config, q_BTNH, 'query', 'heads', kind)


def keys_values(
    module: nn.Module, config: ModelConfig, x_BTD: jax.Array, kind: int | jax.Array
) -> tuple[jax.Array, jax.Array]:
    """As `queries`, [B, T, K, H] each."""
    k_BTKH = _projected(module, config, x_BTD, 'key', config.kv_heads, 'kv_heads')
    v_BTKH = k_BTKH
    if not (isinstance(kind, int) and config.kinds[kind].values_from == 'keys'):
        v_BTKH = _projected(module, config, x_BTD, 'value', config.kv_heads, 'kv_heads')
    if config.value_norm:
        v_BTKH = unit_norm(config, v_BTKH)
    return _normed(config, k_BTKH, 'key', 'kv_heads', kind), v_BTKH


def output(module: nn.Module, config: ModelConfig, seen_BTNH: jax.Array) -> jax.Array:
    """Output projection of the heads, [B, T, D]."""
    c = config
    shape, axes = (c.heads, c.head_dim, c.width), ('heads', 'head_dim', 'embed')
    weight_NHD = parameter(module, 'output', initializer(c, 'output'), shape, axes, c.dtype)
    B, T = seen_BTNH.shape[:2]
    out_BTD = project(seen_BTNH.reshape(B, T, -1), weight_NHD.reshape(-1, c.width))
    if c.output_bias:
        out_BTD += bias(module, 'output_bias', (c.width,), ('norm',), c.dtype)
    return out_BTD


def _projected(
    module: nn.Module, config: ModelConfig, x_BTD: jax.Array, name: str, heads: int, axis: str
) -> jax.Array:
    c = config
    shape, axes = (c.width, heads, c.head_dim), ('embed', axis, 'head_dim')
    weight_DNH = parameter(module, name, initializer(c, name), shape, axes, c.dtype)
    projected_BTC = project(x_BTD, weight_DNH.reshape(c.width, -1))
    projected_BTNH = projected_BTC.reshape(*x_BTD.shape[:2], heads, c.head_dim)
    if c.qkv_bias:
        projected_BTNH += bias(module, f'{name}_bias', shape[1:], axes[1:], c.dtype)
    return projected_BTNH


def _normed(
    config: ModelConfig, x_BTNH: jax.Array, name: str, heads: str, kind: int | jax.Array
) -> jax.Array:
    """Queries or keys as layers of that kind use them: after QK-norm, of each head by itself or of
    all together, or as they were projected."""
    if not config.qk_norm:
        return x_BTNH
    if config.qk_norm_weights:
        axes = ('norm',) if config.qk_norm_over == 'head' else (heads, 'head_dim')
        norm = Norm(config, centred=False, biased=False, axes=axes, name=f'{name}_norm')
        normed_BTNH = norm(x_BTNH)
    else:
        normed_BTNH = unit_norm(config, x_BTNH)
    has = np.array([kind.qk_norm is not False for kind in config.kinds])
    if has.all():
        return normed_BTNH
    if isinstance(kind, int):
        return normed_BTNH if has[kind] else x_BTNH
    return jnp.where(jnp.asarray(has)[kind], normed_BTNH, x_BTNH)
