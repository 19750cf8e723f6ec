"""Beam search: the k likeliest continuations kept at every step.

The rules are those of Hugging Face `transformers`. A beam ends at a stop id among the k best
candidates. Its score is the sum of its log-probabilities / length ** length_penalty (the length
counts the stop id). The k best finished ones are kept. The search of a row ends when no running
beam can beat the worst of them, as `early_stopping` estimates it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.model.cache import Cache
from nope.model.config import ModelConfig
from nope.model.decoding.choose import invalid
from nope.model.decoding.reading import next_logits, repeat
from nope.model.decoding.steps import Stops

_NEVER = -1e9  # a score that no beam has


@dataclasses.dataclass(frozen=True)
class BeamSearch:
    """width: k. length_penalty: above 0 favours long continuations.

    early_stopping: True ends a row as soon as k beams are finished; False when its best running
    beam, at its present length, scores below all of those; 'never' when it would at the length
    that suits it best.
    """

    width: int
    length_penalty: float = 1.0
    early_stopping: bool | str = False

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f'beams is {self.width}; it must be at least 1')
        if not math.isfinite(self.length_penalty):
            raise ValueError(f'length_penalty is {self.length_penalty}; it must be finite')
        if not isinstance(self.early_stopping, bool) and self.early_stopping != 'never':
            raise ValueError(
                f"early_stopping is {self.early_stopping!r}; accepted: False, True, 'never'"
            )


class Beams(NamedTuple):
    """k continuations of every row: tokens [B, k, M], scores [B, k] float32, lengths [B, k]
    without the stop id."""

    tokens: jax.Array
    scores: jax.Array
    lengths: jax.Array

    def take(self, index_BC: jax.Array) -> Beams:
        """The continuations of these indices, [B, C], in every row."""
        return jax.tree.map(lambda x: _take(x, index_BC), self)


class _State(NamedTuple):
    """finished_Bk: whether each of `best` is a finished continuation. open_B: whether a running
    beam may still get among them. invalid_B: whether logits were those of no distribution. Row b's
    beams are rows b k ... of the cache."""

    cache: Cache
    running: Beams
    best: Beams
    finished_Bk: jax.Array
    open_B: jax.Array
    made: jax.Array
    invalid_B: jax.Array


def search(
    config: ModelConfig,
    beams: BeamSearch,
    weights: Mapping[str, Any],
    cache: Cache,
    logits_BV: jax.Array,
    new_tokens: int,
    stops: Stops,
    upto: jax.Array,
    idle_B: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The best continuation of every row: tokens [B, M], its length [B] without the stop id, and
    its score [B]. The score is NaN after logits of no distribution.

    The prompts of cache and logits_BV fill the first slots. The cache has M = new_tokens more. At
    most `upto`, int32 scalar from 1 to M, are made. The rows of idle_B only fill the batch.
    """
    B, k = logits_BV.shape[0], beams.width
    prompt = cache.slots - new_tokens
    cache = cache.take(jnp.repeat(jnp.arange(B), k))
    none = Beams(
        jnp.zeros((B, k, new_tokens), jnp.int32),
        jnp.full((B, k), _NEVER, jnp.float32),
        jnp.zeros((B, k), jnp.int32),
    )
    # All beams are the same at first: only one of them counts.
    running = none._replace(scores=none.scores.at[:, 0].set(0.0))
    nothing = jnp.zeros((), jnp.int32), jnp.zeros(B, bool)
    state = _State(cache, running, none, jnp.zeros((B, k), bool), ~idle_B, *nothing)
    first_BkV = jnp.repeat(logits_BV[:, None], k, axis=1)
    state = _extend(beams, state, first_BkV, stops, upto, prompt)

    def unfinished(state: _State) -> jax.Array:
        return (state.made < upto) & jnp.any(state.open_B)

    def step(state: _State) -> _State:
        last_BkT = jax.lax.dynamic_slice_in_dim(state.running.tokens, state.made - 1, 1, axis=2)
        logits_RV, cache = next_logits(config, weights, last_BkT.reshape(B * k, 1), state.cache)
        logits_BkV = logits_RV.reshape(B, k, -1)
        return _extend(beams, state._replace(cache=cache), logits_BkV, stops, upto, prompt)

    state = repeat(unfinished, step, state)
    best = jax.tree.map(lambda x: x[:, 0], state.best)
    return best.tokens, best.lengths, jnp.where(state.invalid_B, jnp.nan, best.scores)


def _extend(
    beams: BeamSearch,
    state: _State,
    logits_BkV: jax.Array,
    stops: Stops,
    upto: jax.Array,
    prompt: int,
) -> _State:
    """Every beam by one token."""
    B, k, V = logits_BkV.shape
    log_probs_BkV = jax.nn.log_softmax(logits_BkV.astype(jnp.float32))
    scores_BkV = stops.hold_back(log_probs_BkV, state.made) + state.running.scores[..., None]
    # Enough that k of them run on even where every stop id of every beam is among them.
    candidates = min(max(2, 1 + stops.ids_E.shape[0]) * k, k * V)
    scores_BC, flat_BC = jax.lax.top_k(scores_BkV.reshape(B, -1), candidates)
    parents_BC, tokens_BC = flat_BC // V, (flat_BC % V).astype(jnp.int32)
    found = state.running.take(parents_BC)
    made = state.made + 1
    stopped_BC = stops.hit(tokens_BC)
    ended_BC = stopped_BC | (made >= upto)
    found = Beams(
        jax.lax.dynamic_update_slice_in_dim(found.tokens, tokens_BC[..., None], state.made, axis=2),
        scores_BC,
        found.lengths + (~stopped_BC).astype(jnp.int32),
    )
    best, finished_Bk = _finish(beams, state, found, ended_BC, made)
    next_Bk = jax.lax.top_k(jnp.where(ended_BC, scores_BC + _NEVER, scores_BC), k)[1]
    running = found.take(next_Bk)
    parents_Bk = _take(parents_BC, next_Bk)
    rows_R = (jnp.arange(B)[:, None] * k + parents_Bk).reshape(-1)
    return _State(
        state.cache.reorder(rows_R, prompt, groups=B),
        running,
        best,
        finished_Bk,
        state.open_B & _may_improve(beams, running, best, finished_Bk, made, upto),
        made,
        state.invalid_B | (state.open_B & jnp.any(invalid(logits_BkV), axis=1)),
    )


def _finish(
    beams: BeamSearch, state: _State, found: Beams, ended_BC: jax.Array, made: jax.Array
) -> tuple[Beams, jax.Array]:
    """The best finished continuations with those that end now, and which of them are finished."""
    k = beams.width
    among_best = jnp.arange(found.scores.shape[1]) < k
    counts_BC = ended_BC & among_best & state.open_B[:, None]
    if beams.early_stopping is True:
        counts_BC &= ~jnp.all(state.finished_Bk, axis=1, keepdims=True)
    length = made.astype(jnp.float32) ** beams.length_penalty
    scored = found._replace(scores=jnp.where(counts_BC, found.scores / length, _NEVER))
    merged = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), state.best, scored)
    finished_BC = jnp.concatenate([state.finished_Bk, counts_BC], axis=1)
    best_Bk = jax.lax.top_k(merged.scores, k)[1]
    return merged.take(best_Bk), _take(finished_BC, best_Bk)


def _may_improve(
    beams: BeamSearch,
    running: Beams,
    best: Beams,
    finished_Bk: jax.Array,
    made: jax.Array,
    upto: jax.Array,
) -> jax.Array:
    """bool [B]: whether the best running beam may still beat the worst finished one."""
    long = beams.early_stopping == 'never' and beams.length_penalty > 0
    length = (upto if long else made).astype(jnp.float32)
    possible_B = running.scores[:, 0] / length**beams.length_penalty
    worst_B = jnp.min(jnp.where(finished_Bk, best.scores, _NEVER), axis=1)
    improves_B = possible_B > worst_B
    if beams.early_stopping is True:
        improves_B &= ~jnp.all(finished_Bk, axis=1)
    return improves_B


def _take(x_BC: jax.Array, index_BD: jax.Array) -> jax.Array:
    """x_BC[b, index_BD[b]], whatever axes follow."""
    index = index_BD.reshape(*index_BD.shape, *(1,) * (x_BC.ndim - 2))
    return jnp.take_along_axis(x_BC, index, axis=1)
