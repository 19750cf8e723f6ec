"""Numbers and claims of the figure of the best uniform multiplier, of one seed and over seeds."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, Decided, FigureInput, write
from experiments.figures.claims.decide import decide
from experiments.figures.kinds.uniform_fit import RULES, FitPanel
from experiments.figures.seeds import over_seeds
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import GRIDS, INPUTS, column, rows_of


def test_fit_rows_are_the_records_and_the_fit_is_that_of_the_records(tmp_path):
    write(KINDS['uniform_fit'].draw(INPUTS['uniform_fit']), tmp_path)
    rows = [r for r in rows_of(tmp_path / 'fig7.csv') if r['record'] == 'late']
    records = GRIDS['late']
    np.testing.assert_array_equal(column(rows, 'best_loss_nats'), records['best_loss'])
    np.testing.assert_array_equal(column(rows, 'best_multiplier'), records['best_multiplier'])
    np.testing.assert_array_equal(column(rows, 'base_loss_nats'), records['loss'][2])
    assert [r['fit'] for r in rows[:63]] == [''] * 63
    assert float(rows[63]['fit']) == 1
    assert float(rows[-1]['fit']) == pytest.approx(1 + 0.4 * np.log(4))


def drawn(**runs):
    """A panel a record."""
    options = {'panels': [{'record': name} for name in runs]}
    return KINDS['uniform_fit'].draw(FigureInput('f', runs, options))


def test_fit_claims_follow_the_numbers():
    holds = [(c.number, c.holds) for c in KINDS['uniform_fit'].draw(INPUTS['uniform_fit']).claims]
    assert holds == [(5, True), (5, True), (5, True), (6, True), (None, True)]
    steep = [(c.number, c.holds) for c in drawn(r=synthetic.grid_records(a=0.61)).claims]
    assert steep == [(5, True), (5, False), (5, None), (6, True), (None, True)]


def test_a_grid_without_a_fit_is_refused_and_without_r2_does_not_hold():
    records = synthetic.grid_records()
    with pytest.raises(ValueError, match='there is no fit'):
        drawn(r=synthetic.stating(records, fit_a=None))
    records.attributes['fit_r2'] = None
    assert drawn(r=records).claims[0].holds is False


@pytest.mark.parametrize(
    ('late', 'r2', 'holds'),
    [
        (0.4, 0.98, True),
        (0.31, 0.98, None),
        (0.2, 0.98, False),
        (0.4, 0.4, None),
        (0.4, None, None),
    ],
)
def test_a_slope_grows_where_both_fits_explain_the_multipliers(late, r2, holds):
    early = synthetic.grid_records(a=0.3, train_tokens=10**6)
    more = synthetic.grid_records(a=late, train_tokens=10**7)
    early.attributes['fit_r2'] = r2
    found = drawn(early=early, late=more).claims[2]
    assert (found.id, found.holds) == ('fit_budget', holds)


def test_imported_models_have_no_budget_to_compare():
    grids = {name: synthetic.grid_records(a=0.3, **synthetic.IMPORTED) for name in 'ab'}
    found = drawn(**grids).claims[2]
    assert (found.id, found.holds) == ('fit_budget', None)
    assert 'two known amounts of training' in found.measured['missing']


@pytest.mark.parametrize(
    ('rise', 'holds'), [(0.0, False), (0.05, False), (0.1, None), (0.3, True), (-0.2, False)]
)
def test_the_best_multiplier_keeps_the_loss_flat_or_does_not(rise, holds):
    records = synthetic.grid_records(a=0.35)
    beyond = np.clip((records.coordinates['position'] - 64) / 128, 0, 1)
    found = drawn(NoPE=synthetic.measuring(records, best_loss=1.5 + rise * beyond)).claims[-1]
    assert (found.id, found.holds) == ('uniform_not_flat', holds)
    assert found.measured['rise to 4 L (NoPE)']['mean'] == pytest.approx(rise)


L, T = 32, 128


def panel(title: str = '', a: float = 0.4, r2: float = 0.9, hurts: float = 0.0, rise: float = 0.5):
    """The multiplier 1.8 costs `hurts` inside L; with the best one the loss rises by `rise`."""
    loss = np.stack([np.full(T, 1.0), np.full(T, 1.0 + hurts)])
    best = np.where(np.arange(T) < L, 1.0, 1.0 + rise)
    positions = np.arange(1, T + 1)
    facts = {'seed': 0, 'train_tokens': 1000, 'best_multiplier_window': 1.2}
    multipliers, chosen = np.array([1.0, 1.8]), np.full(T, 1.2)
    return FitPanel('grid', title, facts, L, positions, multipliers, loss, best, chosen, a, r2)


def claim(name: str, *panels_S: list[FitPanel]) -> Decided:
    """Of seeds that are drawn one by one."""
    found = over_seeds([decide(RULES, panels) for panels in panels_S])
    return next(claim for claim in found if claim.id == name)


@pytest.mark.parametrize(
    ('by_seed', 'verdict'),
    [
        ((0.30, 0.31, 0.32), 'holds'),
        ((0.011, 0.012, 0.30), 'undecided'),  # each above 0.01; the interval begins below 0
        ((0.001, 0.002, 0.003), 'does not hold'),
        ((0.011,), 'holds'),
    ],
)
def test_what_holds_for_every_seed_is_open_where_the_interval_has_the_limit(by_seed, verdict):
    assert claim('uniform_hurts', *([panel(hurts=x)] for x in by_seed)).verdict == verdict


def test_a_rise_of_every_seed_is_held_against_its_interval_too():
    assert claim('uniform_not_flat', *([panel(rise=x)] for x in (0.4, 0.5, 0.6))).holds is True
    assert claim('uniform_not_flat', *([panel(rise=x)] for x in (0.2, 0.2, 3.0))).holds is None


def test_a_fit_that_explains_little_leaves_the_slope_of_the_others_decided():
    """Its own interval contains a limit."""
    early = (0.11, 0.224, 0.19)
    seeds = [
        [panel('early', a, r2=0.3), panel('late', 0.55 + s / 100)] for s, a in enumerate(early)
    ]
    assert claim('fit_slope', *seeds).verdict == 'does not hold'
    assert claim('fit_slope', *([early] for early, _ in seeds)).verdict == 'undecided'
