"""One token after another, by a model whose logits are a table of the last token."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model.cache import empty
from nope.model.decoding import Sampling, Stops, next_logits, steps, unstack
from tests import tiny
from tests.model.decoding.programs import table_model, table_variables

V, NEW = 12, 6
CONFIG = table_model(V)
# The likeliest token after i is i + 1, and the next likeliest is i - 1.
ARROW_VV = np.zeros((V, V), np.float32)
ARROW_VV[np.arange(V), (np.arange(V) + 1) % V] = 2
ARROW_VV[np.arange(V), (np.arange(V) - 1) % V] = 1
PROMPTS = np.array([[3, 7], [1, 4], [5, 0], [9, 2]], np.int32)


@functools.partial(jax.jit, static_argnums=0)
def run(
    sampling: Sampling, looks: Any, variables: Any, prompts: Any, stops: Stops, idle: Any, keys: Any
) -> steps.State:
    """Until there are looks[0] tokens, then looks[1] ..."""
    B, T = prompts.shape
    weights = unstack(CONFIG, variables)
    cache = empty(CONFIG, jnp.full(B, T + NEW, jnp.float32), T + NEW)
    logits_BV, cache = next_logits(CONFIG, weights, prompts, cache)
    state = steps.begin(sampling, cache, logits_BV, NEW, stops, idle, keys)

    def advance(i: Any, state: steps.State) -> steps.State:
        return steps.advance(CONFIG, sampling, weights, state, stops, looks[i])

    return jax.lax.fori_loop(0, len(looks), advance, state)


def made(
    table_VV: np.ndarray = ARROW_VV,
    *,
    stop_ids: tuple[int, ...] = (),
    least: int = 0,
    idle: tuple[bool, ...] = (False,) * 4,
    sampling: Sampling = Sampling(),  # noqa: B008 (frozen)
    looks: tuple[int, int, int] = (NEW,) * 3,
    order: tuple[int, ...] = (0, 1, 2, 3),
    seed: int = 0,
) -> tuple[list[list[int]], steps.State]:
    """What each row gets, and the last state."""
    rows = np.array(order)
    nothing = (V,) * (2 - len(stop_ids))  # as many stop ids every time: one program
    state = run(
        sampling,
        np.array(looks, np.int32),
        table_variables(table_VV),
        PROMPTS[rows],
        Stops(np.array(stop_ids + nothing, np.int32), np.int32(least)),
        np.array(idle)[rows],
        jax.random.split(jax.random.key(seed), 4)[rows],
    )
    tokens = np.asarray(state.tokens_BM)
    return [t[:n].tolist() for t, n in zip(tokens, state.lengths_B, strict=True)], state


def test_each_token_is_the_likeliest_after_the_one_before() -> None:
    found, state = made()
    assert found == [[(last + i) % V for i in range(1, 1 + NEW)] for last in (7, 4, 0, 2)]
    assert state.made == NEW and not np.any(state.done_B)
    assert state.cache.filled == 2 + NEW - 1  # the last one is not read


def test_a_stop_id_ends_its_row_alone() -> None:
    """It is not in the result; a row that meets none goes on to the end."""
    found, state = made(stop_ids=(9, 4))
    assert found == [[8], [5, 6, 7, 8], [1, 2, 3], [3]]
    assert np.all(state.done_B) and state.made == 5
    found, state = made(stop_ids=(1, 8))
    assert found == [[], [5, 6, 7], [], [3, 4, 5, 6, 7]]
    found, state = made(stop_ids=(2,))
    assert [len(row) for row in found] == [NEW, NEW, 1, NEW] and state.made == NEW


def test_no_row_stops_before_it_has_the_least_of_tokens() -> None:
    """Until then the next likeliest takes the stop id's place, as often as it would come."""
    found, _ = made(stop_ids=(8, 2), least=3)
    # After the 7 the 6 is likeliest but for the stop id, and after that the 7 again.
    assert found[0] == [6, 7, 6, 7]
    assert found[1] == [5, 6, 7]
    assert found[2] == [1, 0, 1]
    assert found[3] == [3, 4, 5, 6, 7]
    assert made(stop_ids=(8,), least=NEW)[0][0] == [6, 7] * (NEW // 2)


def test_rows_that_are_done_get_nothing() -> None:
    found, state = made(idle=(True, False, True, False), stop_ids=(4, 6))
    assert found == [[], [5], [], [3]]
    assert state.made == 2
    _, state = made(idle=(True,) * 4)
    assert state.made == 1


@pytest.mark.parametrize('sampling', [Sampling(), Sampling(1.0)], ids=['greedy', 'sampled'])
def test_looking_in_between_changes_nothing(sampling: Sampling) -> None:
    found, state = made(stop_ids=(9,), sampling=sampling, looks=(1, 4, NEW))
    expected, other = made(stop_ids=(9,), sampling=sampling)
    assert found == expected
    tiny.assert_same(state.done_B, other.done_B)


def test_a_row_does_not_go_beyond_what_it_may() -> None:
    found, state = made(looks=(3,) * 3)
    assert [len(row) for row in found] == [3] * 4 and state.made == 3
    assert not np.any(state.done_B)


def test_samples_of_a_row_are_its_own() -> None:
    """They go with its key wherever it stands, and are other ones with another key."""
    sampling, order = Sampling(1.0), (2, 0, 3, 1)
    found, _ = made(sampling=sampling, stop_ids=(11,))
    moved, _ = made(sampling=sampling, stop_ids=(11,), order=order)
    assert moved == [found[row] for row in order]
    assert made(sampling=sampling, stop_ids=(11,), seed=1)[0] != found


def test_samples_follow_the_table() -> None:
    """A token that the table forbids never comes; every step draws anew."""
    table_VV = np.tile(np.where(np.arange(V) < 6, -1e9, 0.0), (V, 1))
    found, _ = made(table_VV, sampling=Sampling(1.0))
    assert all(token >= 6 for row in found for token in row)
    assert len({tuple(row) for row in found}) > 1
    assert all(len(set(row)) > 1 for row in found)
