from __future__ import annotations

import collections
import random

import pytest

from nope.data.mixture import CHUNK, SourceDraws

WEIGHTS = (0.693584, 0.306416)


@pytest.mark.parametrize('weights', [WEIGHTS, (1.0, 2.0, 0.5), (3.0,)])
def test_draws_are_those_of_python(weights):
    draws = SourceDraws(314, weights)
    expected = random.Random(314).choices(range(len(weights)), weights, k=2 * CHUNK + 100)
    assert [draws[i][0] for i in range(len(expected))] == expected


def test_rank_counts_the_earlier_draws_of_the_same_source():
    draws = SourceDraws(7, WEIGHTS)
    seen = collections.Counter()
    for i in range(CHUNK + 1000):
        source, rank = draws[i]
        assert rank == seen[source]
        seen[source] += 1


def test_random_access_equals_sequential_access():
    sequential, jumping = SourceDraws(5, WEIGHTS), SourceDraws(5, WEIGHTS)
    places = [12 * CHUNK + 17, 3, CHUNK, CHUNK - 1, 11 * CHUNK, 0, 5 * CHUNK + 1]
    expected = {i: sequential[i] for i in sorted(places)}
    assert {i: jumping[i] for i in places} == expected


def test_seeds_give_different_streams():
    first, second = SourceDraws(0, WEIGHTS), SourceDraws(1, WEIGHTS)
    assert [first[i] for i in range(100)] != [second[i] for i in range(100)]
