"""Headlines: numbers in plain words with units, of one seed and of several."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from experiments.figures.claims.headline import Number, apart, line, merged, number
from experiments.figures.claims.intervals import Interval


def test_a_number_of_one_seed_is_said_with_its_unit_and_without_an_interval():
    found = number('NoPE - RoPE', 0.17981, 'nats')
    assert found.said() == 'NoPE - RoPE 0.180 nats'
    assert (found.stated()['mean'], found.stated()['interval']) == (0.17981, None)


def test_a_number_of_several_seeds_has_the_interval_of_its_mean_behind_it():
    values = np.array([0.1, 0.2, 0.3])
    found, interval = number('rise', values, 'nats'), Interval.of(values)
    assert found.said() == f'rise 0.200 nats [{interval.low:.3f}, {interval.high:.3f}]'
    assert found.stated()['interval'] == [interval.low, interval.high]
    assert number('rise', interval, 'nats') == found


def test_a_number_of_one_seed_is_said_with_the_interval_of_its_resamples():
    found = dataclasses.replace(number('rise', 0.2, 'nats'), resampled=(0.15, 0.26))
    assert found.said() == 'rise 0.200 nats [0.150, 0.260 by resamples]'
    stated = found.stated()
    assert (stated['interval'], stated['interval_of']) == ([0.15, 0.26], 'resamples')
    assert Number.from_stated(json.loads(json.dumps(stated))) == found
    assert dataclasses.replace(found, limits=(0.25,)).open
    assert 'interval_of' not in number('rise', np.array([0.1, 0.3]), 'nats').stated()


@pytest.mark.parametrize(
    ('value', 'unit', 'said'),
    [
        (12.34, '%', 'x 12.3 %'),
        (0.5931, '', 'x 0.59'),
        (-0.0004, 'nats', 'x 0.000 nats'),
        (-0.5, 'bits', 'x -0.50 bits'),
        (None, 'L', 'x: none measured'),
    ],
)
def test_digits_follow_the_unit(value, unit, said):
    assert number('x', value, unit).said() == said


def test_the_interval_of_a_share_ends_where_shares_do():
    found = np.array([100.0, 10.0, 100.0])
    shares, points = number('keys', found, '%'), number('keys', found, 'points')
    assert shares.said() == 'keys 70.0 % [0.0, 100.0]'
    assert shares.stated()['interval'] == [0, 100]
    assert points.said() == 'keys 70.0 points [-59.1, 199.1]'


def test_a_value_that_some_seeds_lack_has_no_mean():
    (found,) = merged([(number('rises from', 1.0, 'L'),), (number('rises from', None, 'L'),)])
    assert found.said() == 'rises from 1.00, none L'
    assert found.stated()['mean'] is None


def test_seeds_are_merged_by_the_words_of_their_numbers():
    seeds = [(number('a', 1.0), number('b', s)) for s in (2.0, 4.0)]
    assert line(merged(seeds)) == 'a 1.00 [1.00, 1.00]; b 3.00 [-9.71, 15.71]'


def test_a_note_of_some_seeds_is_none_of_all():
    noted = dataclasses.replace(number('a', 1.0), note='the end')
    for both, said in (((noted, number('a', 1.0)), ''), ((noted, noted), ' (the end)')):
        for seeds in (both, both[::-1]):
            assert line(merged([(n,) for n in seeds])) == f'a 1.00 [1.00, 1.00]{said}'


def test_differences_are_those_of_each_seed_where_both_have_as_many():
    np.testing.assert_allclose(apart(np.array([2.0, 3.0]), np.array([1.0, 1.0])), [1, 2])
    np.testing.assert_allclose(apart(np.array([2.0, 3.0]), np.array([1.0])), [1.5])


@pytest.mark.parametrize('ends', [None, (-1, 1), (-math.inf, 1), (0, math.inf)])
def test_a_number_read_back_says_what_the_one_that_was_written_says(ends):
    """An interval that ends where the number does, too; as JSON, which has no infinity."""
    wanted = number('R^2', np.array([-0.1, 0.9, 0.95]), ends=ends)
    wanted = dataclasses.replace(wanted, note='of a kind')
    text = json.dumps(wanted.stated(), allow_nan=False)
    found = Number.from_stated(json.loads(text))
    assert found == wanted and found.said() == wanted.said()
