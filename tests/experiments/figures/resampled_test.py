"""Claims of one seed under resamples: intervals, and verdicts that they unsettle."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments import figures
from experiments.figures import KINDS, Decided, FigureInput, resampled
from experiments.figures.claims.headline import Number
from nope.evals.bootstrap import RESAMPLES
from nope.records import FLOOR, INSIDE, RESAMPLE, RESAMPLED, Measure, Records
from tests.experiments.figures.synthetic import INPUTS, length_runs, positions_records

DECIDED = sorted(kind for kind, figure in KINDS.items() if figure.RESAMPLED)


def spread(made: Records, by: dict[str, float], seed: int = 0) -> Records:
    """`made` with resamples of its measures, which lie around them by so much."""
    rng, measures = np.random.default_rng(seed), dict(made.measures)
    for name, scale in by.items():
        found = made.measures[name]
        center = found.values if len(found.axes) == 1 else found.values.mean(axis=(0, 1))
        shifts = scale * rng.normal(size=(RESAMPLES, 1))
        axes = (RESAMPLE, found.axes[-1])
        measures[name + RESAMPLED] = Measure(center + shifts, axes, found.unit)
    return dataclasses.replace(made, measures=measures)


def parity(*, behind: float, apart: float, together: float = 0.0) -> Decided:
    """Of NoPE, so many nats behind RoPE; resamples of the two lie apart by `apart` nats, and
    `together` moves both."""
    roles = {'base': 'nope', 'rope': 'rope'}
    options = {'panels': [{'curves': [{'record': r} for r in roles.values()]}], 'roles': roles}
    records = {
        'nope': positions_records(floor=1.5 + behind),
        'rope': positions_records(floor=1.5, position='rope'),
    }
    records = {name: spread(r, {'loss': together, 'entropy': 0.0}) for name, r in records.items()}
    held = records['nope'].measures['loss' + RESAMPLED]
    moved = held.values + apart * np.random.default_rng(1).normal(size=(RESAMPLES, 1))
    measures = records['nope'].measures | {'loss' + RESAMPLED: Measure(moved, held.axes, held.unit)}
    records['nope'] = dataclasses.replace(records['nope'], measures=measures)
    output = figures.draw('entropy_loss', FigureInput('fig1', records, options))
    return next(claim for claim in output.claims if claim.id == 'parity')


def test_a_number_has_the_interval_of_its_resamples():
    claim = parity(behind=0.2, apart=0.01)
    (found,) = claim.numbers
    assert found.interval is not None
    # 1.96 standard deviations to each side, as far as 200 draws tell.
    assert found.interval.low == pytest.approx(0.2 - 0.0196, abs=0.005)
    assert found.interval.high == pytest.approx(0.2 + 0.0196, abs=0.005)
    assert found.stated()['interval_of'] == 'resamples'
    assert found.said().endswith(' by resamples]')
    assert claim.verdict == 'does not hold' and claim.statement.endswith(resampled.STATEMENT)


@pytest.mark.parametrize(
    ('behind', 'apart', 'verdict'),
    [
        (0.20, 0.01, 'does not hold'),
        (0.20, 0.20, 'undecided'),
        (0.00, 0.001, 'holds'),
        (0.00, 0.20, 'undecided'),
    ],
)
def test_a_verdict_that_resamples_do_not_share_is_none(behind, apart, verdict):
    found = parity(behind=behind, apart=apart)
    assert found.verdict == verdict
    assert (found.holds is None) == (verdict == 'undecided')


def test_what_the_windows_change_for_both_models_alike_changes_no_difference():
    (found,) = parity(behind=0.2, apart=0.0, together=0.5).numbers
    assert found.interval is not None
    assert found.interval.high - found.interval.low < 1e-6


def test_entropies_are_resampled_too():
    records = {
        'uniform': positions_records(lam='1.5', multiplier=1.5),
        'headscale': positions_records(lam='HeadScale at 256', multiplier=None, entropy_bend=90),
    }
    records = {
        n: spread(r, {'loss': 0.0, 'entropy': 0.01}, i) for i, (n, r) in enumerate(records.items())
    }
    options = {
        'panels': [{'curves': [{'record': name} for name in records]}],
        'roles': {'uniform': ['uniform'], 'headscale': {4: 'headscale'}},
    }
    output = figures.draw('entropy_loss', FigureInput('fig4', records, options))
    numbers = [n for c in output.claims for n in c.numbers if n.unit == 'bits']
    assert numbers
    for number in numbers:
        assert number.interval is not None
        assert 0.01 < number.interval.high - number.interval.low < 0.2


def test_records_that_the_figure_does_not_show_do_not_unsettle_it():
    """Beside a model that has learned nothing, whose floor is below its loss."""
    roles = {'base': 'nope', 'rope': 'rope'}
    options = {'panels': [{'curves': [{'record': r} for r in roles.values()]}], 'roles': roles}
    still = {'loss': 0.001, 'entropy': 0.001}
    records = {
        'nope': spread(positions_records(floor=1.5), still),
        'rope': spread(positions_records(floor=1.5, position='rope'), still, 1),
    }
    untrained = spread(positions_records(floor=9.0, run_id='other'), still)
    for made in (*records.values(), untrained):
        made.attributes.update({FLOOR: 5.0, INSIDE: float(made['loss'][:64].mean())})
    found = [
        figures.draw('entropy_loss', FigureInput('fig1', shown, options)).claims[0].verdict
        for shown in (records, {**records, 'other': untrained})
    ]
    assert found == ['holds', 'holds']


@pytest.mark.parametrize(('share', 'shown'), [(0.5, True), (1.0, False)])
def test_keys_have_intervals_where_resamples_differ(share, shown):
    given = INPUTS['passkey_maps']
    draw, records = np.random.default_rng(3), {}
    for name, made in given.records.items():
        found = made.measures['accuracy']
        values = np.full(found.values.shape, share)
        resamples = draw.binomial(9, share, (RESAMPLES, *values.shape)) / 9
        accuracy = Measure(values, found.axes, '')
        beside = Measure(resamples, (RESAMPLE, *found.axes), '')
        measures = made.measures | {'accuracy': accuracy, 'accuracy' + RESAMPLED: beside}
        records[name] = dataclasses.replace(made, measures=measures)
    groups = {name.rpartition('/')[0] for name in records}
    one = {n: r for n, r in records.items() if n.endswith('seed0') or '/' not in n}
    assert len(one) >= len(groups)
    output = figures.draw('passkey_maps', dataclasses.replace(given, records=one))
    numbers = [n for c in output.claims for n in c.numbers if n.unit in ('%', 'points')]
    assert numbers
    assert any(n.resampled is not None for n in numbers) == shown


@pytest.mark.parametrize('seeds', [1, 3])
def test_seeds_come_before_windows(seeds):
    """Of several seeds, and of records of which some have no resamples, nothing is said."""
    given = INPUTS['length_curves']
    records = length_runs(seeds)
    some = dict(list(records.items())[: None if seeds > 1 else 1])
    mixed = records | {n: spread(r, {'loss_window': 9, 'loss_tail': 9}) for n, r in some.items()}
    with_resamples = figures.draw('length_curves', dataclasses.replace(given, records=mixed))
    without = figures.draw('length_curves', dataclasses.replace(given, records=records))
    assert with_resamples.claims == without.claims


def test_seeds_with_and_without_resamples_are_pooled():
    given = INPUTS['entropy_loss']
    seeds = {}
    for name, made in given.records.items():
        for seed, found in enumerate((made, spread(made, {'loss': 0.1, 'entropy': 0.1}))):
            facts = {**made.attributes, 'seed': seed}
            seeds[f'{name}/seed{seed}'] = dataclasses.replace(found, attributes=facts)
    for order in (1, -1):
        records = dict(list(seeds.items())[::order])
        output = figures.draw('entropy_loss', dataclasses.replace(given, records=records))
        assert all(n.resampled is None for c in output.claims for n in c.numbers)


@pytest.mark.parametrize('kind', DECIDED)
def test_claims_without_a_picture_are_those_of_the_figure(kind):
    given = INPUTS[kind]
    assert KINDS[kind].decided(given) == KINDS[kind].draw(given).claims


SOME = 40  # resamples, where it does not matter how many
MEASURED = {
    'positions': ('loss', 'entropy'),
    'lengths': ('loss_window', 'loss_tail'),
    'perplexity': ('loss',),
    'passkey': ('accuracy',),
}


def of_one_seed(kind: str, scale: float | None) -> FigureInput:
    """The input of a kind with the first seed alone; scale: of resamples, which move every number
    of a record by one of their own."""
    given, records = INPUTS[kind], {}
    for index, (name, made) in enumerate(given.records.items()):
        if name.rpartition('/')[2] not in ('seed1', 'seed2'):
            measures = MEASURED[made.attributes['evaluation']]
            resamples = dict.fromkeys(measures, scale)
            records[name] = made if scale is None else _moved(made, resamples, index)
    return dataclasses.replace(given, records=records)


def _moved(made: Records, by: dict[str, float], seed: int) -> Records:
    rng, measures = np.random.default_rng(seed), dict(made.measures)
    for name, scale in by.items():
        found = made.measures[name]
        size = (SOME, *found.values.shape)
        values = found.values + scale * rng.normal(size=size)
        measures[name + RESAMPLED] = Measure(values, (RESAMPLE, *found.axes), found.unit)
    return dataclasses.replace(made, measures=measures)


@pytest.mark.parametrize('kind', DECIDED)
def test_resamples_of_every_kind_keep_verdicts_or_unsettle_them(kind):
    """Those that are nearly what was measured keep all; those far from it leave fewer decided, and
    turn none into its opposite."""
    without, near, far = (
        figures.draw(kind, of_one_seed(kind, scale)).claims for scale in (None, 1e-9, 5.0)
    )
    assert [c.verdict for c in near] == [c.verdict for c in without]
    assert any(n.resampled is not None for c in near for n in c.numbers)
    for before, after in zip(without, far, strict=True):
        assert after.holds in (before.holds, None)
    settled = [sum(c.holds is not None for c in claims) for claims in (without, far)]
    assert settled[1] < settled[0] or not settled[0]


def test_a_number_that_resamples_only_lower_has_no_interval():
    """As the longest of several lengths: an interval is of the number, or not shown."""
    found, low = Number('reach', 'L', (2.0,)), [(Number('reach', 'L', (x,)),) for x in (0.5, 1.75)]
    assert resampled._within(found, low * 100) == found
    around = [(Number('reach', 'L', (x,)),) for x in (0.5, 2.5)]
    assert resampled._within(found, around * 100).resampled == (0.5, 2.5)


def test_figures_of_losses_and_keys_decide_their_claims_alone():
    by_position, by_length = {'entropy_loss'}, {'length_curves', 'factor_grid'}
    tables, keys = {'tuned_lengths', 'perplexity_table'}, {'passkey_maps', 'key_curves', 'frontier'}
    assert by_position | by_length | tables | keys == set(DECIDED)


@pytest.mark.parametrize(('undecided', 'verdict'), [(20, 'does not hold'), (21, 'undecided')])
def test_a_verdict_needs_half_of_the_resamples_even_if_no_number_differs(undecided, verdict):
    found = Decided('parity', 1, '', {}, 'said.', 'does not hold')
    open_ = dataclasses.replace(found, verdict='undecided')
    claim = resampled._by_resamples(found, [open_] * undecided + [found] * (40 - undecided))
    assert claim.verdict == verdict and (claim.holds is None) == (undecided > 20)
    assert claim.statement.endswith(resampled.STATEMENT) == (undecided > 20)
