from __future__ import annotations

import functools
import math
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import records
from nope.evals import attention_distance, attention_rows
from nope.evals.attention_distance import SequenceGroup
from nope.evals.attention_rows import Model
from nope.positions import Alibi, Learned, T5Bias
from tests import tiny
from tests.evals import divergences
from tests.vectors import VECTORS

NOPE = tiny.model()
ALIBI = tiny.model(position=Alibi())
PADDED = 16  # what all examples here are filled up to: few programs
LENGTHS = (5, 9, 13)
RNG = np.random.default_rng(0)
GROUPS = [
    SequenceGroup(n, [RNG.integers(64, size=n + more).astype(np.int32) for more in (0, 1, 3)])
    for n in LENGTHS
]


@functools.cache
def model(config: Any, seed: int = 0) -> Model:
    return Model(config, tiny.varied_lam(config, seed))


def measured(first: Model, second: Model, groups: Any = GROUPS, **how: Any) -> records.Records:
    return attention_distance.run(first, second, groups, mesh=tiny.mesh(), **how)


def pattern(of: Model, tokens: np.ndarray) -> np.ndarray:
    """All weights of one sequence, [L, N, T, T]."""
    T = len(tokens)
    filled = jnp.asarray(np.pad(tokens, (0, PADDED - T)))[None]
    lengths, at = jnp.asarray([T]), jnp.arange(PADDED)
    found = attention_rows.weights(*of, filled, lengths, at)
    return np.asarray(found)[:, 0, :, :T, :T]


def by_definition(
    first: Model, second: Model, tokens: np.ndarray, at: Any = slice(None), **how: Any
) -> np.ndarray:
    """D_AT of every pair of heads of one sequence in float64, [L, N, M]."""
    p, q = (pattern(of, tokens)[:, :, at] for of in (first, second))
    return divergences.attention_distance(p[:, :, None], q[:, None], **how)


def test_distances_are_those_of_the_definition(tmp_path: pathlib.Path) -> None:
    """The least of the pairs of each sequence, then the mean of sequences of several lengths."""
    first, second = model(NOPE), model(ALIBI, 1)
    found = measured(first, second)
    pairs = [[by_definition(first, second, x) for x in group.sequences] for group in GROUPS]
    expected = np.array([np.mean([p.min(axis=(1, 2)) for p in group], axis=0) for group in pairs])
    np.testing.assert_allclose(found['distance'], expected, rtol=1e-4, atol=1e-6)
    means = np.array([np.mean(group, axis=0) for group in pairs])
    np.testing.assert_allclose(found['pairs'], means, rtol=1e-4, atol=1e-6)
    assert found['distance'].shape == (3, 2) and np.all(found['distance'] < math.log(2))
    assert np.ptp(found['distance']) > 1e-4
    assert found.along('length', 3).tolist() == list(LENGTHS)
    assert found['examples'].tolist() == [3, 3, 3]
    records.save(found, tmp_path)
    np.testing.assert_array_equal(records.load(tmp_path)['pairs'], found['pairs'])


def test_the_released_number_has_swapped_arguments_and_pairs_of_later_heads() -> None:
    first, second = model(NOPE), model(ALIBI, 1)
    swapped = divergences.swapped_jensen_shannon
    least = [
        min(
            by_definition(first, second, x, divergence=swapped)[0, i, j]
            for i in range(4)
            for j in range(i + 1, 4)
        )
        for x in GROUPS[1].sequences
    ]
    found = measured(first, second)['released']
    np.testing.assert_allclose(found[1, 0], np.mean(least), rtol=1e-4)


def test_chosen_queries_alone_are_averaged() -> None:
    first, second = model(NOPE), model(ALIBI, 1)
    (tokens,) = GROUPS[2].sequences[:1]
    found = measured(first, second, [SequenceGroup(13, [tokens])], queries=2)
    at = attention_rows.chosen(13, 2)
    least = by_definition(first, second, tokens, at).min(axis=(1, 2))
    np.testing.assert_allclose(found['distance'][0], least, rtol=1e-4)


def test_a_model_is_at_0_from_itself_with_its_heads_in_another_order() -> None:
    """All pairs are compared: those of later heads alone would miss it."""
    config = tiny.model(kv_heads=4)
    one = model(config)

    def turned(path: tuple, leaf: jax.Array) -> jax.Array:
        if path[-1].key in ('query', 'key', 'value'):
            return jnp.roll(leaf, 1, axis=2)  # [L, D, N, H]
        if path[-1].key == 'output':
            return jnp.roll(leaf, 1, axis=1)  # [L, N, H, D]
        return (
            jnp.roll(leaf, 1, axis=1) if path[-1].key == 'head' and path[0].key == 'lam' else leaf
        )

    other = Model(config, jax.tree_util.tree_map_with_path(turned, one.variables))
    itself = measured(one, one, GROUPS[:1])
    np.testing.assert_array_equal(itself['distance'], 0.0)
    assert np.all(itself['released'] > 1e-5)
    np.testing.assert_allclose(measured(one, other, GROUPS[:1])['distance'], 0.0, atol=1e-6)


@pytest.mark.parametrize('case', VECTORS['divergences'])
def test_vectors_in_float32(case: str) -> None:
    own = VECTORS['divergences'][case]
    p, q = (jnp.asarray(own[name], jnp.float32).reshape(1, 1, 1, 1, 2) for name in 'pq')
    found = attention_distance.divergence_sums(p, q, jnp.asarray([1]), jnp.asarray([0]))
    np.testing.assert_allclose(found[0].item(), own['jsd_nats'], rtol=1e-5)
    np.testing.assert_allclose(found[1].item(), own['released_code_reverse_jsd'], rtol=1e-5)


def test_weights_without_a_common_key_are_finite() -> None:
    """ln 2 apart; the swapped divergence divides by the smallest normal number."""
    p, q = (jnp.asarray(x, jnp.float32).reshape(1, 1, 1, 1, 2) for x in ([1, 0], [0, 1]))
    true, swapped = attention_distance.divergence_sums(p, q, jnp.asarray([1]), jnp.asarray([0]))
    np.testing.assert_allclose(true.item(), math.log(2), rtol=1e-6)
    assert 40 < swapped.item() < 100


def test_one_head_has_no_released_number() -> None:
    config = tiny.model(heads=1, kv_heads=1, position=T5Bias(buckets=8, max_distance=12))
    found = measured(model(config), model(config, 1), GROUPS[:1])
    assert 'released' not in found.measures and found['pairs'].shape == (1, 2, 1, 1)


@pytest.mark.parametrize(
    ('second', 'groups', 'how', 'message'),
    [
        (tiny.model(layers=3), GROUPS, {}, '2 and 3 layers'),
        (NOPE, [], {}, 'at least one group'),
        (NOPE, [SequenceGroup(3, [])], {}, 'a sequence in each'),
        (NOPE, [SequenceGroup(3, [np.zeros(0, np.int32)])], {}, 'a sequence is empty'),
        (NOPE, GROUPS, {'queries': 0}, 'queries is 0; accepted: at least 1'),
        (tiny.model(position=Learned(8)), GROUPS, {}, r'has 16 tokens; learned positions end at 8'),
    ],
)
def test_what_does_not_fit_is_refused(second: Any, groups: Any, how: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measured(model(NOPE), model(second), groups, **how)
