"""Numbers, curves and claims of the figure of keys repeated by length."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import FOUR, INPUTS, KEYS, claims_of, column, key_records

OPTIONS = INPUTS['key_curves'].options


def drawn(runs=None, **options):
    runs = synthetic.key_runs(2) if runs is None else runs
    return KINDS['key_curves'].draw(FigureInput('f', runs, {**OPTIONS, **options}))


def claims(far, four=(1.0,) * 5, **facts):
    """By id. far, four: shares by length of each seed, of one key and of one of four."""
    runs = {f'far/{seed}': key_records(shares, seed) for seed, shares in enumerate(far)}
    runs |= {f'four/{seed}': key_records(four, seed, **FOUR | facts) for seed in range(len(far))}
    roles = {'split': 'far', 'split_four': 'four'}
    options = {'curves': [{'group': 'far'}, {'group': 'four'}], 'roles': roles}
    return claims_of('key_curves', FigureInput('f', runs, options))


def test_rows_are_the_records():
    given = INPUTS['key_curves']
    rows = KINDS['key_curves'].draw(given).rows
    for name, records in given.records.items():
        mine = [row for row in rows if row['record'] == name]
        np.testing.assert_allclose(column(mine, 'share_of_keys'), records['accuracy'].mean(1))
        np.testing.assert_array_equal(column(mine, 'length'), records.coordinates['length'])
        np.testing.assert_array_equal(column(mine, 'prompt_tokens'), records['tokens'])
        assert {row['prompts'] for row in mine} == {100}
        assert {row['needles'] for row in mine} == {records.attributes.get('needles', 1)}
    assert len(rows) == sum(len(r['tokens']) for r in given.records.values())


def test_a_curve_is_the_mean_over_seeds_in_percent_between_the_extremes():
    axes = drawn().figure.axes[0]
    for line, (group, shares) in zip(axes.lines, KEYS.items(), strict=True):
        runs = [synthetic.key_runs(2)[f'{group}/seed{seed}'] for seed in (0, 1)]
        mean = np.mean([r['accuracy'].mean(1) for r in runs], axis=0)
        np.testing.assert_allclose(line.get_ydata(), 100 * mean)
        np.testing.assert_array_equal(line.get_xdata(), synthetic.KEY_MULTIPLES[: len(shares)])
    assert len(axes.collections) == len(KEYS)
    assert axes.get_xscale() == 'log'
    assert not drawn(synthetic.key_runs(1)).figure.axes[0].collections


@pytest.mark.parametrize(
    ('far', 'four', 'holds'),
    [
        ([1.0, 0.99], 0.9, (True, True)),
        ([1.0, 0.97], 0.85, (None, None)),  # of 100 prompts
        ([1.0, 0.96], 0.83, (False, False)),
        ([0.0, 0.0], 0.0, (False, False)),
    ],
)
def test_every_seed_must_repeat_the_keys(far, four, holds):
    """One that falls short by what chance does decides nothing."""
    found = claims([(1.0,) * 6 + (share,) for share in far], (1.0,) * 4 + (four,))
    assert (found['keys_far'].holds, found['keys_four'].holds) == holds
    assert found['keys_far'].measured['by_seed'] == pytest.approx(far)
    assert found['keys_four'].measured['prompts'] == '4 named keys in filler'
    assert found['keys_four'].number is None


def test_a_length_that_was_not_measured_leaves_its_claim_undecided():
    found = claims([(1.0,) * 6], (1.0,) * 4)
    assert [found[k].holds for k in ('keys_far', 'keys_four')] == [None, None]
    assert found['keys_far'].measured == {
        'missing': "'far' was asked for keys at 1 L, 2 L, 4 L, 8 L, 16 L, 32 L, not at 64 L"
    }


def test_other_prompts_than_the_claims_decide_nothing():
    found = claims([(1.0,) * 7], needles=3)
    assert found['keys_four'].holds is None
    assert '3 named keys in filler, not for one of 4' in found['keys_four'].measured['missing']
    nobody = drawn(roles={}).claims
    assert [c.holds for c in nobody] == [None, None]
    assert nobody[0].measured == {'missing': "no curve has the role 'split'"}


def test_curves_may_end_at_different_lengths_but_seeds_and_prompts_agree():
    runs = synthetic.key_runs(2)
    del runs['half/seed1']
    with pytest.raises(ValueError, match="'half' has the seeds"):
        drawn(runs)
    for changed in ({'tests': 5}, {'needles': 4}, {'template': 'paper'}):
        runs = synthetic.key_runs(2)
        runs['nope/seed1'] = synthetic.stating(runs['nope/seed1'], **changed)
        with pytest.raises(ValueError, match="seeds of 'nope' differ in their prompts"):
            drawn(runs)
    runs = synthetic.key_runs(1)
    runs['nope/seed0'] = key_records((1.0, 0.2))
    assert drawn(runs).figure.axes[0].lines[0].get_xdata().tolist() == [1, 2]
