"""Parameters of single layers: rows of stacks, or arrays of their own where layers are apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax

from nope.model.config import ModelConfig

Layers = Mapping[str, Any]  # under 'params', 'layers'


def each_layer(config: ModelConfig, layers: Layers) -> list[Layers]:
    """The arrays of every layer, without the axis of layers."""
    if config.apart:
        return [layers[str(i)] for i in range(config.layers)]
    return [jax.tree.map(lambda stack, i=i: stack[i], layers) for i in range(config.layers)]


def map_attention(
    config: ModelConfig, function: Callable[..., Layers], layers: Layers, *of_layers: jax.Array
) -> Layers:
    """The layers with `function` of their arrays and of their rows of `of_layers` for every one
    that has attention: one call for all where they are stacked."""
    if not config.apart:
        return jax.vmap(function)(layers, *of_layers)
    made = {
        str(layer): function(layers[str(layer)], *(rows[row] for rows in of_layers))
        for row, layer in enumerate(config.attending)
    }
    return {**layers, **made}
