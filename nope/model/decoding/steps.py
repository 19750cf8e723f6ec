"""One token after another, greedy or sampled, until every row has met a stop id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.model.cache import Cache
from nope.model.config import ModelConfig
from nope.model.decoding.choose import Sampling, choose, invalid
from nope.model.decoding.reading import next_logits, repeat


class Stops(NamedTuple):
    """Stop condition of rows. ids_E: int32, none of which is in the result. least: int32 scalar,
    new tokens before the first of them is allowed."""

    ids_E: jax.Array
    least: jax.Array

    def hit(self, tokens: jax.Array) -> jax.Array:
        """Mask of the tokens that are stop ids; bool of their shape."""
        return jnp.any(tokens[..., None] == self.ids_E, axis=-1)

    def hold_back(self, logits: jax.Array, made: jax.Array) -> jax.Array:
        """Logits [..., V] without the stop ids where fewer than `least` tokens were made."""
        barred = jnp.zeros(logits.shape[-1], bool).at[self.ids_E].set(True)
        return jnp.where((made < self.least) & barred, -jnp.inf, logits)


class State(NamedTuple):
    """Rows on their way.

    The cache has the prompts and all made tokens but the last. tokens_BM holds `made` tokens, int32
    scalar. The lengths lengths_B, int32, leave out stop ids. Each row has a random key. Rows of
    invalid_B had logits of no distribution.
    """

    cache: Cache
    tokens_BM: jax.Array
    made: jax.Array
    lengths_B: jax.Array
    done_B: jax.Array
    keys_B: jax.Array
    invalid_B: jax.Array


def begin(
    sampling: Sampling,
    cache: Cache,
    logits_BV: jax.Array,
    new_tokens: int,
    stops: Stops,
    done_B: jax.Array,
    keys_B: jax.Array,
) -> State:
    """The first new token. new_tokens: M. done_B: rows that only fill the batch."""
    B = logits_BV.shape[0]
    state = State(
        cache,
        jnp.zeros((B, new_tokens), jnp.int32),
        jnp.zeros((), jnp.int32),
        jnp.zeros(B, jnp.int32),
        done_B,
        keys_B,
        jnp.zeros(B, bool),
    )
    return _add(sampling, state, logits_BV, stops)


def advance(
    config: ModelConfig,
    sampling: Sampling,
    weights: Mapping[str, Any],
    state: State,
    stops: Stops,
    upto: jax.Array,
) -> State:
    """Makes tokens until there are `upto` (int32 scalar, at most M) or every row is done."""

    def unfinished(state: State) -> jax.Array:
        return (state.made < upto) & ~jnp.all(state.done_B)

    def step(state: State) -> State:
        last_B1 = jax.lax.dynamic_slice_in_dim(state.tokens_BM, state.made - 1, 1, axis=1)
        logits_BV, cache = next_logits(config, weights, last_B1, state.cache)
        return _add(sampling, state._replace(cache=cache), logits_BV, stops)

    return repeat(unfinished, step, state)


def _add(sampling: Sampling, state: State, logits_BV: jax.Array, stops: Stops) -> State:
    keys_B = jax.vmap(jax.random.fold_in, in_axes=(0, None))(state.keys_B, state.made)
    tokens_B = choose(sampling, stops.hold_back(logits_BV, state.made), keys_B)
    done_B = state.done_B | stops.hit(tokens_B)
    tokens_BM = jax.lax.dynamic_update_slice_in_dim(
        state.tokens_BM, tokens_B[:, None], state.made, axis=1
    )
    return state._replace(
        tokens_BM=tokens_BM,
        made=state.made + 1,
        lengths_B=state.lengths_B + (~done_B).astype(jnp.int32),
        done_B=done_B,
        invalid_B=state.invalid_B | (invalid(logits_BV) & ~state.done_B),
    )
