"""Weights of single attention heads: silenced, or put in another order within their layers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from nope.model import ModelConfig
from nope.model.stacks import Layers, map_attention
from nope.variables import logical_axes

Params = dict[str, Any]


def silenced(config: ModelConfig, params: Params, silent_LN: np.ndarray) -> Params:
    """`params` in which the heads with silent_LN, bool [L, N], add nothing to the residual stream:
    their rows of the output projection are 0. All other arrays are shared."""

    def of_layer(layer: Layers, silent_N: jax.Array) -> Layers:
        output_NHD = layer['attention']['output']
        kept_NHD = jnp.where(silent_N[:, None, None], 0, output_NHD)
        return {**layer, 'attention': {**layer['attention'], 'output': kept_NHD}}

    old = params['layers']
    layers = map_attention(config, of_layer, old, jnp.asarray(silent_LN))
    placed = jax.tree.map(lambda new, old: jax.device_put(new, old.sharding), layers, old)
    return {**params, 'layers': placed}


def reordered(config: ModelConfig, params: Params, order_LK: np.ndarray) -> Params:
    """`params` with the key-value heads of every layer, and the query heads that read them, in
    another order. The model computes the same where no encoding, gate or lambda tells heads apart.

    order_LK: int [L, K], of each layer's new heads which old one it is. ValueError where the model
    has forget gates, whose heads have their places, and where its layers differ in their arrays.
    """
    if config.apart:
        raise ValueError(
            f'the heads of layers that differ in their arrays ({config.describe_kinds()}) '
            'cannot be put in another order'
        )
    if config.gate is not None:
        raise ValueError('the heads of a model with forget gates cannot be put in another order')
    group = np.arange(config.heads // config.kv_heads)
    order_LN = (order_LK[:, :, None] * len(group) + group).reshape(config.layers, -1)
    orders = {'heads': order_LN, 'kv_heads': order_LK}

    def in_order(array: jax.Array, axes: PartitionSpec) -> jax.Array:
        for name in axes:
            if name in orders:
                axis = axes.index(name)
                others = tuple(other for other in range(1, array.ndim) if other != axis)
                places = jnp.asarray(np.expand_dims(orders[name], others))
                taken = jnp.take_along_axis(array, places, axis=axis)
                return jax.device_put(taken, array.sharding)
        return array

    axes = logical_axes(config)['params']['layers']['attention']
    attention = jax.tree.map(in_order, params['layers']['attention'], axes)
    return {**params, 'layers': {**params['layers'], 'attention': attention}}


def order_of(scores_LN: np.ndarray, kv_heads: int) -> np.ndarray:
    """Key-value heads by falling score, int [L, K]. A score is the mean over the query heads that
    read the head; ties keep their order."""
    scores_LK = scores_LN.reshape(len(scores_LN), kv_heads, -1).mean(-1)
    return np.argsort(-scores_LK, axis=1, kind='stable')
