"""Histograms of the distance of the most attended key: the definition, bins, batches, bad input."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import records
from nope.evals import attended_distance, attention_rows
from nope.evals.attended_distance import CountedSequence
from nope.positions import Alibi
from tests import tiny

RNG = np.random.default_rng(0)
PARTS = [
    CountedSequence(RNG.integers(64, size=n).astype(np.int32), first)
    for n, first in ((5, 0), (9, 4), (13, 2), (16, 15), (7, 7))
]


def measured(config: Any, parts: Any = PARTS) -> records.Records:
    return attended_distance.run(config, tiny.varied_lam(config, 1), parts, mesh=tiny.mesh())


@functools.cache
def weights(config: Any, number: int) -> np.ndarray:
    """All weights of one of PARTS, [L, N, T, T], without padding."""
    tokens = jnp.asarray(PARTS[number].tokens)[None]
    T = tokens.shape[1]
    found = attention_rows.weights(
        config, tiny.varied_lam(config, 1), tokens, jnp.asarray([T]), jnp.arange(T)
    )
    return np.asarray(found)[:, 0]


@pytest.mark.parametrize('position', [None, Alibi()], ids=['none', 'alibi'])
def test_histograms_are_those_of_the_definition(position: Any, tmp_path: pathlib.Path) -> None:
    config = tiny.model() if position is None else tiny.model(position=position)
    found = measured(config)
    distances = []
    for number, part in enumerate(PARTS):
        for q in range(part.first, len(part.tokens)):
            key_LN = weights(config, number)[:, :, q].argmax(axis=-1)
            distances.append((q - key_LN) / (q + 1))
    expected = np.array(distances)
    assert found.attributes['queries'] == len(expected) == 5 + 5 + 11 + 1
    assert found.attributes['sequences'] == len(PARTS)
    np.testing.assert_allclose(found['distance'], expected.mean(axis=0), rtol=1e-6)
    edges = np.arange(21) / 20
    for place in np.ndindex(expected.shape[1:]):
        counts, _ = np.histogram(expected[:, *place] + 1e-9, edges)
        np.testing.assert_allclose(found['share'][place], counts / len(expected))
    records.save(found, tmp_path)


def test_a_distance_on_the_edge_of_a_bin_is_in_the_upper_one() -> None:
    """Of query 9 the key 4 is half of the context away; in float32 6 / 20 * 10 is less than 3."""
    weights_LBNRS = np.zeros((1, 2, 1, 20, 20), np.float32)
    for row, q in ((0, 9), (1, 19)):
        weights_LBNRS[0, row, 0, q, (4, 13)[row]] = 1
    counts, sums = attended_distance.histogram(
        jnp.asarray(weights_LBNRS), jnp.arange(20), jnp.asarray([9, 19]), jnp.asarray([10, 20]), 10
    )
    assert np.flatnonzero(counts[0, 0]).tolist() == [3, 5] and counts.sum() == 2
    np.testing.assert_allclose(sums, [[0.5 + 0.3]], rtol=1e-6)


@pytest.mark.parametrize(('parts', 'said'), [
    ([CountedSequence(np.zeros(4, np.int32), 4)], 'no sequence has a query that is counted'),
    ([], 'no sequence has a query that is counted'),
    ([*PARTS, CountedSequence(np.zeros(0, np.int32), 0)], 'a sequence is empty'),
])  # fmt: skip
def test_bad_input_is_refused(parts: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        measured(tiny.model(), parts)


def test_weights_that_are_no_numbers_have_no_distance() -> None:
    config = tiny.model()
    broken = jax.tree.map(lambda x: x * np.nan, tiny.variables(config))
    with pytest.raises(ValueError, match='attention weights are NaN'):
        attended_distance.run(config, broken, PARTS[:1], mesh=tiny.mesh())
