"""The loop over new tokens, which writes its cache in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from nope.model.cache import merged

State = TypeVar('State', bound=Any)


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
