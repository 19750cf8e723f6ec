"""Rows of attention weights: every chosen query once, batches, budgets, meshes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nope import sharding
from nope.evals import attention_rows
from nope.evals.attention_rows import Model
from nope.positions import Alibi, Learned
from tests import tiny

NOPE = tiny.model()
ALIBI = tiny.model(position=Alibi())
RNG = np.random.default_rng(0)
SEQUENCES = [RNG.integers(64, size=n).astype(np.int32) for n in (5, 20, 16, 5, 16, 20)]


@functools.cache
def model(config: Any) -> Model:
    return Model(config, tiny.varied_lam(config, 1))


def gathered(
    models: Sequence[Model], mesh: Any = None, **how: Any
) -> dict[tuple, list[np.ndarray]]:
    """By sequence and query inside it: the weights on the keys of each model, [L, N, q + 1]."""
    found: dict[tuple, list[np.ndarray]] = {}
    mesh = mesh or tiny.mesh()
    with sharding.use(mesh):
        for rows in attention_rows.over(models, SEQUENCES, mesh=mesh, **how):
            lengths, at, *weights = map(np.asarray, (rows.lengths_B, rows.queries_R, *rows.weights))
            for place, number in enumerate(rows.members):
                assert lengths[place] == len(SEQUENCES[number])
                for r, q in enumerate(at.tolist()):
                    if q < len(SEQUENCES[number]):
                        assert (number, q) not in found
                        found[number, q] = [w[:, place, :, r, : q + 1] for w in weights]
            assert np.all(lengths[len(rows.members) :] == 1)
    return found


@functools.cache
def whole() -> dict[tuple, list[np.ndarray]]:
    return gathered([model(NOPE), model(ALIBI)])


def test_every_query_comes_once_with_weights_that_sum_to_1() -> None:
    found = whole()
    assert set(found) == {(i, q) for i, x in enumerate(SEQUENCES) for q in range(len(x))}
    for pair in found.values():
        assert len(pair) == 2
        np.testing.assert_allclose([x.sum(axis=-1) for x in pair], 1, rtol=1e-5)
    assert np.abs(found[1, 19][0] - found[1, 19][1]).max() > 0.01


def test_batches_change_no_weight() -> None:
    parts = gathered([model(NOPE), model(ALIBI)], budget=2 * 8 * 32 * 3)
    assert whole().keys() == parts.keys()
    for at, pair in whole().items():
        for one, other in zip(pair, parts[at], strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-7)


def test_chosen_queries_end_with_the_last_token_of_each_sequence() -> None:
    found = gathered([model(NOPE)], queries=2)
    expected = {(i, q) for i, x in enumerate(SEQUENCES) for q in (len(x) // 2 - 1, len(x) - 1)}
    assert found.keys() == expected
    for at in expected:
        np.testing.assert_allclose(found[at][0], whole()[at][0], rtol=1e-5, atol=1e-7)


def test_a_mesh_changes_no_weight() -> None:
    """Six sequences on four batch shards, heads over two."""
    mesh = sharding.make_mesh(sharding.MeshConfig(data=4, tensor=2))
    spread = tiny.spread(model(NOPE).variables, NOPE, mesh)
    many = gathered([Model(NOPE, spread)], mesh, budget=2000)
    assert whole().keys() == many.keys()
    for at, (weights, _) in whole().items():
        np.testing.assert_allclose(many[at][0], weights, rtol=1e-5, atol=1e-7)


def test_chosen_positions_are_evenly_spaced() -> None:
    assert attention_rows.chosen(10, 3).tolist() == [2, 5, 9]
    assert attention_rows.chosen(4, 9).tolist() == attention_rows.chosen(4, None).tolist()
    assert attention_rows.chosen(4, None).tolist() == [0, 1, 2, 3]


def test_queries_at_once_fit_the_budget() -> None:
    budget = 4 * 2 * 8 * 16
    assert attention_rows.at_once((NOPE, ALIBI), 16, budget) == 4
    assert attention_rows.at_once((NOPE,), 16, budget) == 8
    assert attention_rows.at_once((NOPE, ALIBI), 16, 1) == 1


@pytest.mark.parametrize(('sequences', 'said'), [
    ([np.zeros(0, np.int32)], 'a sequence is empty'),
    (SEQUENCES, 'a sequence has 20 tokens; learned positions end at 19'),
])  # fmt: skip
def test_what_does_not_fit_is_refused(sequences: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        attention_rows.check_fits(tiny.model(position=Learned(19)), sequences)
