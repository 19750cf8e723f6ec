"""Figures of several seeds: numbers of each, one picture, claims that all seeds decide."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments import figures
from experiments.figures import KINDS, Decided, FigureInput, seeds
from nope.records import Records
from tests.experiments.figures.synthetic import (
    INPUTS,
    grid_records,
    position_runs,
    positions_records,
)


def by_seed(found: dict[str, list[Records]]) -> dict[str, Records]:
    return {
        f'{name}/seed{s}': dataclasses.replace(r, attributes={**r.attributes, 'seed': s})
        for name, records in found.items()
        for s, r in enumerate(records)
    }


def entropy_loss(*floors: float) -> figures.FigureOutput:
    """NoPE and RoPE, RoPE with a loss inside L of each of `floors`, NoPE with one of 1.5."""
    given = INPUTS['entropy_loss']
    roles = {'base': 'nope', 'rope': 'rope'}
    panels = [{'title': '', 'curves': [{'record': name} for name in roles.values()]}]
    records = {
        'nope': [positions_records(floor=1.5, noise=0.0) for _ in floors],
        'rope': [positions_records(floor=floor, position='rope') for floor in floors],
    }
    options = {'panels': panels, 'roles': roles}
    return figures.draw('entropy_loss', FigureInput(given.name, by_seed(records), options))


def parity(output: figures.FigureOutput) -> Decided:
    return next(claim for claim in output.claims if claim.id == 'parity')


def test_records_of_one_seed_are_drawn_as_the_kind_draws_them():
    for kind in ('entropy_loss', 'heads', 'uniform_fit', 'length_curves'):
        given = INPUTS[kind]
        alone, found = KINDS[kind].draw(given), figures.draw(kind, given)
        assert (found.rows, found.caption) == (alone.rows, alone.caption)
        assert found.claims == alone.claims and found.runs == alone.runs


def test_rows_are_those_of_every_seed():
    output = entropy_loss(1.5, 1.7)
    for s, floor in enumerate((1.5, 1.7)):
        rows = [r for r in output.rows if r['seed'] == f'seed{s}' and r['record'] == 'rope']
        assert [r['position'] for r in rows] == list(range(1, 257))
        assert rows[40]['loss_nats'] == pytest.approx(floor)
    assert set(output.runs) == {f'{name}/seed{s}' for name in ('nope', 'rope') for s in (0, 1)}


def test_the_picture_is_of_means_with_a_band_between_the_seeds():
    axes, twin = entropy_loss(1.5, 1.7).figure.axes
    line = next(y for y in twin.lines if y.get_ydata()[40] > 1.55)
    assert line.get_ydata()[40] == pytest.approx(1.6)
    band = twin.collections[1].get_paths()[0].vertices
    assert (band[:, 1].min(), band[40, 1]) == pytest.approx((1.5, 1.5))
    assert np.isclose(band[:, 1], 1.7).any()
    assert len(axes.collections) == 2
    assert 'bands: from the lowest to the highest seed' in entropy_loss(1.5, 1.7).caption
    assert 'seeds 0 and 1' in entropy_loss(1.5, 1.7).caption
    assert not figures.draw('entropy_loss', INPUTS['entropy_loss']).figure.axes[0].collections


@pytest.mark.parametrize(
    ('floors', 'holds', 'verdict'),
    [
        ((1.5, 1.501), True, 'holds'),
        ((1.7, 1.702), False, 'does not hold'),
        ((1.5, 1.8), None, 'undecided'),
        ((1.5, 1.52), None, 'undecided'),  # the interval of 0 and -0.02 goes on to -0.14
    ],
)
def test_a_claim_holds_where_it_does_for_every_seed(floors, holds, verdict):
    found = parity(entropy_loss(*floors))
    assert (found.holds, found.verdict) == (holds, verdict)
    assert found.statement.endswith(seeds.STATEMENT)
    differences = found.measured['NoPE - RoPE']
    assert differences['by_seed'] == pytest.approx([1.5 - floor for floor in floors])
    low, high = differences['interval']
    assert low < differences['mean'] < high


def test_single_heads_are_shown_of_the_first_seed():
    runs = [position_runs(noise=0.01), position_runs(entropy_slope=1.2)]
    records = by_seed({name: [run[name] for run in runs] for name in runs[0]})
    options = INPUTS['multiplier_entropy'].options
    output = figures.draw('multiplier_entropy', FigureInput('fig5', records, options))
    alone = KINDS['multiplier_entropy'].draw(FigureInput('fig5', runs[0], options))
    drawn = [output.figure.axes[0].collections[0], alone.figure.axes[0].collections[0]]
    np.testing.assert_array_equal(drawn[0].get_offsets(), drawn[1].get_offsets())
    assert output.caption.endswith('Shown: seed0 of 2 seeds.')
    assert {row['seed'] for row in output.rows} == {'seed0', 'seed1'}


def test_records_of_different_seeds_are_refused():
    records = by_seed({'nope': [positions_records()] * 2, 'rope': [positions_records()] * 3})
    panels = [{'title': '', 'curves': [{'record': 'nope'}, {'record': 'rope'}]}]
    with pytest.raises(ValueError, match="figure 'f': the records differ in their seeds"):
        figures.draw('entropy_loss', FigureInput('f', records, {'panels': panels}))


def test_the_caption_has_the_lambda_of_every_seed():
    found = {'uniform': [positions_records(lam=lam) for lam in ('1.5', '1.5', '1.55')]}
    options = {'panels': [{'title': '', 'curves': [{'record': 'uniform', 'label': 'one'}]}]}
    caption = figures.draw('entropy_loss', FigureInput('f', by_seed(found), options)).caption
    assert 'one (lambda: 1.5; 1.5; 1.55 by seed): ' in caption


def test_seeds_are_in_the_order_of_their_numbers():
    """'seed10' is the smaller text."""
    options = {'panels': [{'title': '', 'curves': [{'record': name} for name in ('nope', 'rope')]}]}
    options['roles'] = {'base': 'nope', 'rope': 'rope'}
    records = {f'nope/seed{s}': positions_records(seed=s) for s in (10, 2)}
    records |= {f'rope/seed{s}': positions_records(floor=1.5 + s / 10, seed=s) for s in (10, 2)}
    output = figures.draw('entropy_loss', FigureInput('f', records, options))
    assert list(dict.fromkeys(row['seed'] for row in output.rows)) == ['seed2', 'seed10']
    differences = parity(output).measured['NoPE - RoPE']['by_seed']
    assert differences == pytest.approx([-0.2, -1.0])
    assert 'seeds 2 and 10' in output.caption


def fit_by_seed(*r2):
    """Figure 7 of seeds whose a are 0.3 and 0.4."""
    grids = [grid_records(a=a) for a in (0.3, 0.4)]
    for grid, value in zip(grids, r2, strict=True):
        grid.attributes['fit_r2'] = value
    options = {'panels': [{'record': 'grid', 'title': 'NoPE'}]}
    return figures.draw('uniform_fit', FigureInput('fig7', by_seed({'grid': grids}), options))


def legend(output) -> list[str]:
    return [text.get_text() for text in output.figure.axes[0].get_legend().texts]


def test_the_legend_says_that_a_fit_is_a_mean_and_the_caption_speaks_of_no_steps():
    output = fit_by_seed(0.9, 0.8)
    assert any(', mean of 2 seeds: a = 0.350, R² = 0.850' in text for text in legend(output))
    assert 'staircase' not in output.caption
    assert 'chosen for each seed on unsmoothed losses, of a grid of ' in output.caption
    alone = figures.draw('uniform_fit', INPUTS['uniform_fit'])
    assert 'so a staircase in steps of the grid' in alone.caption
    assert not any('mean of' in text for text in legend(alone))


@pytest.mark.parametrize('r2', [(0.9, None), (None, 0.9)])
def test_where_one_seed_has_no_r2_there_is_no_mean(r2):
    assert any('R² = n/a' in text for text in legend(fit_by_seed(*r2)))
