"""Choices, numbers and claims of the figure of extensions without training."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput, write
from experiments.figures.kinds.factor_grid import Method
from experiments.figures.read.length_group import Group
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import FACTOR_CURVES, INPUTS, column, rows_of

OPTIONS = INPUTS['factor_grid'].options


def group(*window, multiples=(1.0, 2.0, 4.0)):
    losses = np.array([window, window])
    names = ('a/seed0', 'a/seed1')
    return Group('a', 'a', names, ('0', '1'), np.array(multiples), losses, losses + 0.5)


# On the windows shown the second factor would be best everywhere.
SHOWN = (group(2.0, 2.0, 2.0), group(1.0, 1.1, 1.2), group(3.0, 3.0, 3.0))


@pytest.mark.parametrize(
    ('choice', 'per_length', 'overall'),
    [
        ((group(1, 5, 9), group(2, 4, 8), group(3, 6, 7)), [1, 2, 4], 2),
        ((group(0, 5, 9), group(0, 5, 9), group(0, 5, 8)), [1, 1, 4], 4),
        # L itself has no say in the factor for all lengths.
        ((group(0, 5, 9), group(99, 5, 8), group(99, 6, 9)), [1, 1, 2], 2),
    ],
)
def test_factors_are_chosen_on_the_other_windows(choice, per_length, overall):
    method = Method('m', (1, 2, 4), SHOWN, choice)
    assert method.factors_per_length == per_length
    assert method.factor_overall == overall
    index = {1: 0, 2: 1, 4: 2}
    expected = [SHOWN[index[f]].loss_window[0, i] for i, f in enumerate(per_length)]
    np.testing.assert_array_equal(method.best('loss_window'), [expected, expected])
    np.testing.assert_array_equal(method.best('loss_tail'), np.array([expected, expected]) + 0.5)
    np.testing.assert_array_equal(method.single('loss_window'), SHOWN[index[overall]].loss_window)


def test_rows_hold_every_factor_on_both_splits(tmp_path):
    given = INPUTS['factor_grid']
    output = KINDS['factor_grid'].draw(given)
    write(output, tmp_path)
    rows = rows_of(tmp_path / 'zero_shot.csv')
    for name, records in given.records.items():
        mine = [row for row in rows if row['record'] == name]
        assert {row['split'] for row in mine} == {records.attributes['split']}
    yarn = [r for r in rows if r['label'] == 'YaRN' and r['seed'] == 'seed0']
    assert {r['role'] for r in yarn} == {'reported', 'choice'}
    assert {float(r['factor']) for r in yarn} == {1, 2, 4, 8}
    for role in ('reported', 'choice'):
        chosen = [r for r in yarn if r['role'] == role and r['chosen_per_length'] == 'True']
        assert sorted(column(chosen, 'length_over_L')) == list(synthetic.MULTIPLES)
    assert {r['chosen_per_length'] for r in rows if r['label'] == 'RoPE'} == {''}


def test_claims_follow_the_numbers():
    reading, flat, head = KINDS['factor_grid'].draw(INPUTS['factor_grid']).claims
    assert (reading.number, reading.holds) == (None, None)
    assert reading.measured['YaRN']['factor_for_each_length'] == {
        '1 L': 1, '1.5 L': 2, '2 L': 2, '3 L': 4, '4 L': 4, '6 L': 8, '8 L': 8
    }  # fmt: skip
    assert (flat.number, flat.holds) == (None, False)
    assert flat.measured['longest_in_L'] == 8
    # From factor 1 at L to 8 at 8 L: three doublings of the cost, and of 0.4 in the tail.
    rise = flat.measured['rise_from_L_to_longest_nats']['best factor for each length']
    means = {name: found['mean'] for name, found in rise.items()}
    assert means['dynamic NTK'] - means['YaRN'] == pytest.approx(3 * (0.06 - 0.02))
    # HeadScale of these records lies above both.
    assert (head.number, head.holds) == (11, False)
    assert all(number.by_seed[0] > 0 for number in head.numbers)


def changed(prefix, amount):
    """The runs with the losses of the longest length below `prefix` raised."""
    runs = synthetic.factor_runs(1)
    for name in [n for n in runs if n.startswith(prefix)]:
        for measure in ('loss_window', 'loss_tail'):
            runs[name][measure][-1] += amount
    return FigureInput('f', runs, OPTIONS)


def test_claims_fail_and_hold_where_the_numbers_do():
    assert KINDS['factor_grid'].draw(changed('yarn', 0.5)).claims[1].holds is False
    between = changed('ntk', 2.0)
    assert KINDS['factor_grid'].draw(between).claims[2].holds is True


@pytest.mark.parametrize(
    ('kept', 'missing'),
    [
        ({}, ["'ntk'", "'headscale'"]),
        ({'yarn', 'headscale'}, ["'ntk'", "'ntk'"]),
        ({'ntk', 'yarn'}, ["'headscale'"]),
        ({'headscale'}, ["'ntk'", "'ntk'; no curve has the role 'yarn'"]),
    ],
)
def test_claims_whose_roles_nobody_plays_are_undecided_and_say_so(kept, missing):
    roles = {role: label for role, label in OPTIONS['roles'].items() if role in kept}
    given = FigureInput('f', synthetic.factor_runs(1), {**OPTIONS, 'roles': roles})
    reading, *found = KINDS['factor_grid'].draw(given).claims
    assert set(reading.measured) == {'dynamic NTK', 'YaRN'}
    lacking = [c.measured['missing'] for c in found if 'missing' in c.measured]
    assert [text[text.index("'") :] for text in lacking] == missing


@pytest.mark.parametrize(
    ('role', 'label', 'noun'),
    [('ntk', 'RoPE', 'curve with a grid'), ('headscale', {8: 'YaRN'}, 'curve without a grid')],
)
def test_methods_have_grids_and_searches_none(role, label, noun):
    with pytest.raises(ValueError, match=f"figure 'f': role '{role}' is given to the {noun}"):
        KINDS['factor_grid'].required('f', {**OPTIONS, 'roles': {role: label}})


def test_a_grid_needs_lengths_beyond_l_and_the_same_seeds():
    runs = synthetic.factor_runs(2)
    del runs['yarn_2_choice/seed1']
    with pytest.raises(ValueError, match="'yarn_2_choice' has the seeds"):
        KINDS['factor_grid'].draw(FigureInput('f', runs, {'curves': FACTOR_CURVES}))
    long = synthetic.factor_runs(1)
    for records in long.values():
        records.coordinates['length'][:] = np.arange(1, 8)
    with pytest.raises(ValueError, match='no length above L was measured'):
        KINDS['factor_grid'].draw(FigureInput('f', long, {'curves': FACTOR_CURVES}))


@pytest.mark.parametrize(
    ('yarn', 'ntk', 'holds'),
    [
        ((0.05, 0.06), (1.7, 1.8), True),
        ((0.5, 0.51), (1.7, 1.8), False),  # not flat
        ((0.05, 0.06), (0.2, 0.21), False),  # flat as well
        ((0.05, 0.5), (1.7, 1.8), None),
    ],
)
def test_yarn_is_flat_by_a_limit_of_its_own(yarn, ntk, holds):
    """Rises to 8 L, by seed, with every factor."""
    runs = synthetic.factor_runs(2)
    for name, records in runs.items():
        rises = {'yarn': yarn, 'ntk': ntk}.get(name.split('_')[0])
        if rises is not None:
            records['loss_tail'][:] = 1.5
            records['loss_tail'][-1] += rises[int(name[-1])]
    given = dataclasses.replace(INPUTS['factor_grid'], records=runs)
    assert KINDS['factor_grid'].draw(given).claims[1].holds is holds
