"""Intervals over seeds and the verdicts that follow from them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import ABOVE, AT_MOST, BELOW, NEAR, Bound, every, verdict

H, F, U, N = 'holds', 'does not hold', 'undecided', 'not measured'


@pytest.mark.parametrize('seeds', [2, 3, 5, 11, 40])
def test_the_interval_is_students(seeds):
    values = np.random.default_rng(seeds).normal(2.0, 0.3, seeds)
    found = Interval.of(values)
    expected = stats.t.interval(0.95, seeds - 1, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-3)
    assert found.stated()['interval'] == [found.low, found.high]
    assert Interval.of(values[:1]).stated() == {'mean': values[0], 'by_seed': [values[0]]}


@pytest.mark.parametrize(
    ('values', 'above', 'below', 'at_most', 'near'),
    [
        ([1.0, 1.1, 0.9], True, False, False, False),
        ([-1.0, -1.1, -0.9], False, True, True, False),
        ([1.0, -0.5, 0.4], None, None, None, None),
        ([0.2], True, False, False, True),
        ([-0.2], False, True, True, True),
        ([0.0], False, False, True, True),
        ([0.0, 0.0, 0.0], None, None, True, True),
        ([0.6], True, False, False, False),
    ],
)
def test_a_limit_inside_the_interval_is_not_decided(values, above, below, at_most, near):
    found = Interval.of(np.array(values))
    held = [Bound(side, 0).holds(found) for side in (ABOVE, BELOW, AT_MOST)]
    assert held == [above, below, at_most]
    assert Bound(NEAR, 0.5).holds(found) is near


def test_a_mean_within_the_margin_and_a_single_seed_of_several_decide_nothing():
    one = Interval.of(np.array([0.02]))
    assert Bound(ABOVE, 0, 0.02).holds(one) is None and Bound(ABOVE, 0, 0.01).holds(one)
    assert Bound(ABOVE, 0).holds(Interval.of(np.array([0.02]), several=True)) is None


@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_refused_by_its_name(bad):
    values = np.array([0.1, bad])
    said = re.escape(f"'rise' must be finite for every seed, got [0.1, {bad}]")
    with pytest.raises(ValueError, match=said):
        Interval.of(values, what='rise')
    with pytest.raises(ValueError, match=said):
        _ = number('rise', values).interval


@pytest.mark.parametrize(
    ('parts', 'all_hold'), [([True, True], True), ([True, None], None), ([None, False, 1], False)]
)
def test_one_that_fails_decides_and_one_that_is_open_leaves_all_open(parts, all_hold):
    assert every(parts) is all_hold


@pytest.mark.parametrize(
    ('cases', 'given', 'said'),
    [
        ([H, H], {}, H),
        ([H, F], {}, U),
        ([H, F], {'opposed': 'disagree'}, 'disagree'),
        ([H, U], {'opposed': 'disagree'}, U),
        ([H, N], {}, N),
        ([H], {'open_': True}, U),
        ([N], {'open_': True}, N),
        ([H] * 40 + [F], {'rare': 0.025}, H),
        ([H] * 39 + [F] * 2, {'rare': 0.025}, U),
        ([H] + [H] * 20 + [U] * 20, {'rare': 0.025}, H),
        ([H] + [H] * 19 + [U] * 20 + [N], {'rare': 0.025}, U),
        ([H] + [U] * 200, {'rare': 0.025}, U),
    ],
)
def test_several_cases_decide_together(cases, given, said):
    """Seeds, figures with their own word for opposite ones, and resamples of the first."""
    assert verdict(cases, **given) == said
