"""Output gates: what multiplies each head's output, by the query's input (arXiv 2505.06708)."""

from __future__ import annotations

import flax.linen as nn
import jax

from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.parameters import parameter, project


def output_gates(module: nn.Module, config: ModelConfig, x_BTD: jax.Array) -> jax.Array:
    """sigmoid(x W), [B, T, N, H] for gates of each element and [B, T, N, 1] for those of each head.

    module: whose parameter W is. x_BTD: what queries are projected from.
    """
    c = config
    size = c.head_dim if c.output_gate == 'element' else 1
    shape, axes = (c.width, c.heads, size), ('embed', 'heads', 'head_dim')
    weight_DNH = parameter(module, 'output_gate', initializer(c, 'gate'), shape, axes, c.dtype)
    gates_BTC = jax.nn.sigmoid(project(x_BTD, weight_DNH.reshape(c.width, -1)))
    return gates_BTC.reshape(*x_BTD.shape[:2], c.heads, size)
