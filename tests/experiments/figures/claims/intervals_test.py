"""Intervals over seeds and the verdicts that follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.figures.claims import intervals
from experiments.figures.claims.intervals import Interval


@pytest.mark.parametrize('seeds', [2, 3, 5, 11])
def test_the_interval_is_students(seeds: int) -> None:
    values = np.random.default_rng(seeds).normal(2.0, 0.3, seeds)
    found = Interval.of(values)
    expected = stats.t.interval(0.95, seeds - 1, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-3)
    assert found.mean == pytest.approx(values.mean())
    assert found.stated()['interval'] == [found.low, found.high]


def test_many_seeds_have_an_interval_that_is_not_too_narrow() -> None:
    values = np.random.default_rng(0).normal(size=40)
    exact = stats.t.interval(0.95, 39, values.mean(), stats.sem(values))
    found = Interval.of(values)
    assert found.low <= exact[0] and found.high >= exact[1]


@pytest.mark.parametrize(
    ('values', 'above', 'below'),
    [
        ([1.0, 1.1, 0.9], True, False),
        ([-1.0, -1.1, -0.9], False, True),
        ([1.0, -0.5, 0.4], None, None),
        ([0.2], True, False),
        ([-0.2], False, True),
        ([0.0], False, False),
    ],
)
def test_a_limit_inside_the_interval_is_not_decided(
    values: list[float], above: bool | None, below: bool | None
) -> None:
    found = Interval.of(np.array(values))
    assert (found.above(0), found.below(0)) == (above, below)


def test_one_seed_has_no_interval() -> None:
    assert Interval.of(np.array([0.3])).stated() == {'mean': 0.3, 'by_seed': [0.3]}


def test_one_that_fails_decides_and_one_that_is_open_leaves_all_open() -> None:
    assert intervals.every([True, True]) is True
    assert intervals.every([True, None]) is None
    assert intervals.every([None, False, True]) is False


@pytest.mark.parametrize(('trials', 'share'), [(3, 0.5), (40, 0.99), (100, 0.9)])
def test_chance_is_that_of_the_binomial_distribution(trials: int, share: float) -> None:
    counts = range(-1, trials + 1)
    found = [intervals.at_most_by_chance(count, trials, share) for count in counts]
    assert found == pytest.approx(stats.binom.cdf(list(counts), trials, share))
