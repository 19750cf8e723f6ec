"""Headlines: numbers in plain words with units, of one seed and of several."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from experiments.figures.claims.headline import Number, apart, line, merged, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.roles import Undecided

THREE = np.array([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ('found', 'said'),
    [
        (number('NoPE - RoPE', 0.17981, 'nats'), 'NoPE - RoPE 0.180 nats'),
        (number('rise', THREE, 'nats'), 'rise 0.200 nats [-0.048, 0.448]'),
        (number('rise', Interval.of(THREE), 'nats'), 'rise 0.200 nats [-0.048, 0.448]'),
        (number('x', 12.34, '%'), 'x 12.3 %'),
        (number('x', 0.5931, ''), 'x 0.59'),
        (number('x', -0.0004, 'nats'), 'x 0.000 nats'),
        (number('x', -0.5, 'bits'), 'x -0.50 bits'),
        (number('x', None, 'L'), 'x: none measured'),
        # The interval of a share ends where shares do.
        (number('keys', np.array([100.0, 10, 100]), '%'), 'keys 70.0 % [0.0, 100.0]'),
        (number('keys', np.array([100.0, 10, 100]), 'points'), 'keys 70.0 points [-59.1, 199.1]'),
        (
            dataclasses.replace(number('rise', 0.2, 'nats'), resampled=(0.15, 0.26)),
            'rise 0.200 nats [0.150, 0.260 by resamples]',
        ),
        (dataclasses.replace(number('a', 1.0), note='of a kind'), 'a 1.00 (of a kind)'),
        (number('R^2', np.array([-0.1, 0.9, 0.95]), ends=(-1, 1)), 'R^2 0.58 [-0.89, 1.00]'),
        (number('R^2', np.array([-0.1, 0.9, 0.95]), ends=(-math.inf, 1)), 'R^2 0.58 [-0.89, 1.00]'),
        (number('x', np.array([-0.1, 0.9]), ends=(0, math.inf)), 'x 0.40 [0.00, 6.75]'),
    ],
)
def test_a_number_is_said_with_its_unit_and_interval_and_read_back_as_it_was_written(found, said):
    """As JSON, which has no infinity."""
    assert found.said() == said
    stated = found.stated()
    assert (stated['interval'] is not None) == ('[' in said)
    assert stated.get('interval_of') == ('resamples' if 'resamples' in said else None)
    assert Number.from_stated(json.loads(json.dumps(stated, allow_nan=False))) == found


def test_an_interval_with_a_limit_is_open():
    found = dataclasses.replace(number('rise', 0.2), resampled=(0.15, 0.26))
    assert [dataclasses.replace(found, limits=(x,)).open for x in (0.25, 0.27)] == [True, False]


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


def test_differences_are_those_of_each_seed():
    np.testing.assert_allclose(apart(np.array([2.0, 3.0]), np.array([1.0, 1.0])), [1, 2])
    np.testing.assert_allclose(apart(np.array([2.0, 3.0]), np.array([1.0])), [1, 2])
    np.testing.assert_allclose(apart(np.array([1.0]), np.array([2.0, 3.0])), [-1, -2])
    with pytest.raises(Undecided, match='2 seeds stand beside 3'):
        apart(np.array([2.0, 3.0]), THREE)
