"""Parameters as decoding reads them: a layer at a time, in the dtype of the computation."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax

from nope.model.config import ModelConfig
from nope.model.stacks import each_layer


@functools.partial(jax.jit, static_argnums=0)
def unstack(config: ModelConfig, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables with {'0': ..., '1': ...} in place of layers stacked on their first axis; where
    layers are apart already, they stay so.

    Decoding reads every weight for every token: once apart, none is copied again. Matrices come
    in the dtype that the model reads them in anyway, norms' weights and those of a temperature,
    which is computed in float32, as they are.
    """

    def read(weight: jax.Array) -> jax.Array:
        return weight.astype(config.dtype) if weight.ndim > 1 else weight

    def of_layer(path: tuple, leaf: jax.Array) -> jax.Array:
        exact = path[-1].key == 'scale' or any(key.key == 'temperature' for key in path)
        return leaf if exact else read(leaf)

    layers = {
        str(i): jax.tree_util.tree_map_with_path(of_layer, layer)
        for i, layer in enumerate(each_layer(config, variables['params']['layers']))
    }
    params = {**variables['params'], 'layers': layers}
    for name in ('embedding', 'head'):
        if name in params:
            params[name] = read(params[name])
    return {**variables, 'params': params}
