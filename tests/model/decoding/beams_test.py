"""Beam search against a slow one by the same rules, and against all continuations there are."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from nope.model import ModelConfig
from nope.model.cache import empty
from nope.model.decoding import BeamSearch, Stops, beams, next_logits, unstack
from nope.positions import RoPE
from tests import tiny
from tests.model.decoding.programs import table_model, table_variables, whole
from tests.model.decoding.slow import LogProbs, Tokens, slowly

V, NEW, ROWS, TABLES = 10, 6, 10, 3
MODEL = table_model(V, positions=NEW + 1)
PROMPTS = np.arange(ROWS, dtype=np.int32)[:, None]
STOPS = (4, 8)


class Found(NamedTuple):
    """Of every row."""

    tokens: list[list[int]]
    scores: np.ndarray


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def run(
    config: ModelConfig,
    search: BeamSearch,
    new_tokens: int,
    variables: Any,
    prompts: Any,
    padding: Any,
    stops: Stops,
    upto: Any,
    idle: Any,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    B, T = prompts.shape
    weights = unstack(config, variables)
    cache = empty(config, np.full(B, T + new_tokens, np.float32), T + new_tokens, padding)
    logits_BV, cache = next_logits(config, weights, prompts, cache)
    return beams.search(config, search, weights, cache, logits_BV, new_tokens, stops, upto, idle)


def searched(
    config: ModelConfig,
    search: BeamSearch,
    new_tokens: int,
    variables: Any,
    prompts: np.ndarray,
    stop_ids: Collection[int],
    *,
    padding: np.ndarray | None = None,
    least: int = 0,
    upto: int = 0,
    idle: np.ndarray | None = None,
) -> Found:
    tokens_BM, lengths_B, scores_B = run(
        config,
        search,
        new_tokens,
        variables,
        prompts,
        padding,
        Stops(np.array([*stop_ids], np.int32), np.int32(least)),
        np.int32(upto or new_tokens),
        np.zeros(len(prompts), bool) if idle is None else idle,
    )
    rows = zip(np.asarray(tokens_BM), lengths_B, strict=True)
    return Found([tokens[:length].tolist() for tokens, length in rows], np.asarray(scores_B))


@functools.cache
def table(number: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(number)
    return draw.normal(0, 1.5, (V, V)), draw.normal(0, 1.0, (NEW + 1, V))


def of_table(number: int, row: int) -> LogProbs:
    table_VV, bias_PV = table(number)

    def log_probs(tokens: Tokens) -> np.ndarray:
        last = tokens[-1] if tokens else row
        logits_V = table_VV[last] + bias_PV[len(tokens)]
        return logits_V - np.log(np.exp(logits_V).sum())

    return log_probs


SEARCHES = [
    BeamSearch(3, 1.0, False),
    BeamSearch(3, 1.0, True),
    BeamSearch(3, 2.0, 'never'),
    BeamSearch(4, 0.0, False),
    BeamSearch(2, -0.5, 'never'),
]


@pytest.mark.parametrize('search', SEARCHES, ids=str)
def test_the_rules_are_kept(search: BeamSearch) -> None:
    """In ten rows of three tables: stop ids, the fewest and the most tokens."""
    ends, lengths = 0, set()
    for number, (least, upto) in itertools.product(range(TABLES), [(0, NEW), (2, NEW), (0, 4)]):
        found = searched(
            MODEL,
            search,
            NEW,
            table_variables(*table(number)),
            PROMPTS,
            STOPS,
            least=least,
            upto=upto,
        )
        expected = [
            slowly(search, of_table(number, row), upto, STOPS, least) for row in range(ROWS)
        ]
        assert found.tokens == [tokens for tokens, _ in expected]
        np.testing.assert_allclose(found.scores, [score for _, score in expected], rtol=1e-5)
        ends += sum(len(tokens) < upto for tokens, _ in expected)
        lengths |= {len(tokens) for tokens, _ in expected}
    assert ends > ROWS and len(lengths) > 3


def test_the_searches_differ() -> None:
    """What the test above tells apart: no two of them find the same everywhere."""
    rows = [*itertools.product(range(TABLES), range(ROWS))]
    found = [[slowly(s, of_table(*row), NEW, STOPS, 0)[0] for row in rows] for s in SEARCHES]
    assert all(a != b for a, b in itertools.combinations(found, 2))


def test_a_row_does_not_depend_on_the_others() -> None:
    """Nor on how long they run; and rows that only fill the batch get nothing."""
    variables, order = table_variables(*table(0)), np.array([7, 2, 9, 9, 0, 1, 5, 3, 3, 8])
    found = searched(MODEL, SEARCHES[0], NEW, variables, PROMPTS, STOPS)
    idle = np.arange(ROWS) >= 4
    moved = searched(MODEL, SEARCHES[0], NEW, variables, PROMPTS[order], STOPS, idle=idle)
    assert moved.tokens == [found.tokens[row] for row in order[:4]] + [[]] * 6


def test_a_search_that_is_wide_enough_finds_the_best_there_is() -> None:
    """Of all continuations of a model that remembers what came before: its cache follows the
    beams. Rows are of different lengths."""
    vocab, new, stop = 3, 3, 2
    config = tiny.model(layers=1, vocab_size=vocab, position=RoPE(), window=5)
    variables, padding = tiny.variables(config), np.array([0, 3, 5], np.int32)
    prompts = tiny.tokens(len(padding), 6, vocab_size=vocab)
    everything = np.array([*itertools.product(range(vocab), repeat=new)], np.int32)
    found = searched(
        config, BeamSearch(vocab**new), new, variables, prompts, (stop,), padding=padding
    )
    for row, pad in enumerate(padding):
        prompt = np.tile(prompts[row, pad:], (len(everything), 1))
        behind = np.zeros((len(everything), pad), np.int32)
        tokens = np.concatenate([prompt, everything, behind], axis=1)
        output = whole(config, variables, tokens, 9.0)
        logits = np.float64(output.hidden) @ np.float64(output.head)
        log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        scores = {}
        for path, ids in zip(log_probs[:, 5 - pad :], everything.tolist(), strict=True):
            count = ids.index(stop) + 1 if stop in ids else new
            total = sum(path[i, token] for i, token in enumerate(ids[:count]))
            scores[tuple(ids[:count])] = total / count
        assert len(scores) == 1 + 2 + 4 * 3
        best = max(scores, key=lambda ids: scores[ids])
        assert found.tokens[row] == [token for token in best if token != stop]
        np.testing.assert_allclose(found.scores[row], scores[best], rtol=1e-5)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'width': 0}, 'beams is 0; it must be at least 1'),
        (
            {'early_stopping': 'always'},
            "early_stopping is 'always'; accepted: False, True, 'never'",
        ),
        ({'early_stopping': 1}, 'early_stopping is 1; accepted'),
        ({'length_penalty': float('nan')}, 'length_penalty is nan; it must be finite'),
        ({'length_penalty': float('inf')}, 'length_penalty is inf'),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BeamSearch(**{'width': 2} | fields)
