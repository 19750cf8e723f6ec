"""Parts of every kind of decoding: weights a layer at a time, reading tokens, the loop."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax

from nope import losses
from nope.model.cache import Cache, merged
from nope.model.config import ModelConfig
from nope.model.stacks import each_layer
from nope.model.transformer import ModelOutput, apply

State = TypeVar('State', bound=Any)


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


def read(
    config: ModelConfig, weights: Mapping[str, Any], tokens_BT: jax.Array, cache: Cache
) -> tuple[ModelOutput, Cache]:
    """The model's output at the next T tokens, and the cache with them. weights: `unstack`ed."""
    output = apply(config, weights, tokens_BT, cache=cache)
    assert output.cache is not None
    return output, output.cache


def next_logits(
    config: ModelConfig, weights: Mapping[str, Any], tokens_BT: jax.Array, cache: Cache
) -> tuple[jax.Array, Cache]:
    """Logits [B, V] float32 of the token after the T given ones, and the cache with these."""
    output, cache = read(config, weights, tokens_BT, cache)
    return losses.logits(output.hidden[:, -1], output.head, config.logit_cap), cache


def repeat(
    unfinished: Callable[[State], jax.Array], step: Callable[[State], State], state: State
) -> State:
    """`step` while the state is `unfinished`. State: a named tuple with a `cache`.

    Between steps the cache's arrays are `merged`, the shape in which they are written and read.
    Carried in another one, XLA's CPU compiler writes each key in both, only one of which can be in
    place, and copies all keys four times a token: more than reading weights and cache takes.
    """
    shapes = jax.tree.map(lambda x: x.shape, state.cache.layers)

    def carried(state: State) -> State:
        return _with_layers(state, jax.tree.map(merged, state.cache.layers))

    def whole(state: State) -> State:
        layers = jax.tree.map(lambda x, s: x.reshape(s), state.cache.layers, shapes)
        return _with_layers(state, layers)

    return whole(jax.lax.while_loop(unfinished, lambda c: carried(step(whole(c))), carried(state)))


def _with_layers(state: State, layers: Any) -> State:
    return state._replace(cache=state.cache._replace(layers=layers))
