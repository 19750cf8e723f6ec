"""Numbers, claims and caption of the figure of an extended checkpoint."""

from __future__ import annotations

import pytest

from experiments.figures import KINDS, FigureInput, draw
from experiments.figures.claims.decide import decide
from experiments.figures.kinds import extension
from experiments.figures.read import position_curve
from tests.experiments.figures import synthetic

OPTIONS = {'before': 'original', 'after': 'extended'}


def curve(name, **changed):
    return position_curve.read(name, synthetic.positions_records(**changed))


def claims(before, after, uniform=None):
    drawn = {'before': before, 'uniform': uniform, 'after': after}
    curves = {role: curve(role, **facts) for role, facts in drawn.items() if facts is not None}
    return decide(extension.RULES, curves)


def test_the_uniform_multiplier_is_optional():
    runs = synthetic.extension_runs()
    del runs['one_multiplier']
    output = KINDS['extension'].draw(FigureInput('f', runs, OPTIONS))
    assert {row['role'] for row in output.rows} == {'before', 'after'}
    assert 'uniform' not in output.claims[1].measured['loss_inside_L_nats']


@pytest.mark.parametrize(
    ('length', 'ranges'),
    [
        (256, ['(0, L]', '(L, 2L]', '(2L, 4L]', 'all of (L, 4L]']),
        (160, ['(0, L]', '(L, 2L]', '(2L, 2.5L]', 'all of (L, 2.5L]']),
        (96, ['(0, L]', '(L, 1.5L]', 'all of (L, 1.5L]']),
    ],
)
def test_losses_are_given_for_every_range_up_to_the_target(length, ranges):
    found = claims({'length': length}, {'length': length, 'floor': 1.6}, {'length': length})[0]
    losses = found.measured['loss_nats']
    assert list(losses) == ranges
    assert losses['(0, L]'] == pytest.approx(
        {'before': 1.5, 'uniform': 1.5, 'after': 1.6, 'after_minus_before': 0.1}
    )


@pytest.mark.parametrize(('slope', 'holds'), [(0.5, True), (1.0, False), (1.5, False)])
def test_the_loss_beyond_l_must_fall(slope, holds):
    assert claims({'loss_slope': 1.0}, {'loss_slope': slope})[0].holds is holds


@pytest.mark.parametrize(('floor', 'holds'), [(1.4, True), (1.54, True), (1.56, False)])
def test_the_loss_inside_l_may_rise_a_little(floor, holds):
    found = claims({}, {'floor': floor})[1]
    assert found.holds is holds
    assert found.measured['loss_inside_L_nats']['after_minus_before'] == pytest.approx(floor - 1.5)


@pytest.mark.parametrize(
    ('before', 'after', 'holds'),
    [(80, 160, True), (80, 1e9, True), (160, 80, False), (1e9, 1e9, None), (1e9, 80, None)],
)
def test_it_must_read_further(before, after, holds):
    found = claims({'loss_bend': before}, {'loss_bend': after})[2]
    assert found.holds is holds
    reads = found.measured['reads_up_to_in_L']
    assert reads['after'] == (
        None if after == 1e9 else pytest.approx(after * 2**0.1 / 64, abs=2 / 64)
    )
    assert found.measured['measured_up_to_in_L'] == 4


@pytest.mark.parametrize(('windows', 'holds'), [(512, True), (64, None)])
def test_too_few_windows_leave_the_reach_undecided(windows, holds):
    found = claims({'windows': windows}, {'windows': windows, 'loss_bend': 160})[2]
    assert (found.holds, found.verdict) == (holds, 'holds' if holds else 'undecided')
    # Of a smoothed loss: five positions of every window, each with a deviation of 2.3 nats.
    assert found.measured['noise_nats'] == pytest.approx(2.3 / (5 * windows) ** 0.5)


@pytest.mark.parametrize('length', [64, 32])
def test_windows_that_end_inside_l_are_refused(length):
    runs = synthetic.extension_runs(length=length)
    with pytest.raises(ValueError, match=r"figure 'f': the windows of .* do not reach beyond"):
        KINDS['extension'].draw(FigureInput('f', runs, OPTIONS))


@pytest.mark.parametrize('attribute', ['length', 'windows', 'data', 'split'])
def test_records_must_be_of_the_same_windows(attribute):
    other = 192 if attribute in ('length', 'windows') else 'another'
    extended = synthetic.extension_runs(**{attribute: other})['extended']
    runs = {**synthetic.extension_runs(), 'extended': extended}
    with pytest.raises(ValueError, match=f"figure 'f': the runs differ in '{attribute}'"):
        KINDS['extension'].draw(FigureInput('f', runs, OPTIONS))


@pytest.mark.parametrize('changes', [(-0.001, -0.5, -0.002), (0.0499, 0.001, 0.0498)])
def test_a_limit_inside_the_interval_over_seeds_decides_nothing(changes):
    runs = {}
    for seed, change in enumerate(changes):
        runs[f'o/seed{seed}'] = synthetic.positions_records(seed=seed)
        runs[f'e/seed{seed}'] = synthetic.positions_records(seed=seed, floor=1.5 + change)
    given = FigureInput('f', runs, {'before': 'o', 'after': 'e'})
    gains, costs, _ = draw('extension', given).claims
    assert (gains if changes[0] < 0 else costs).verdict == 'undecided'
