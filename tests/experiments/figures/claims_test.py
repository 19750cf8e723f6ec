"""Claims come out true and false where curves were built to make them so."""

from __future__ import annotations

import pytest

from experiments.figures import claims, position_curve
from tests.experiments.figures import synthetic

ROTARY = {'position': 'rotary'}
NTK = {'position': 'rotary, dynamic NTK x2'}


def curve(name='a', **changed):
    return position_curve.read(name, synthetic.positions_records(**changed))


def by_number(found, number):
    return [c for c in found if c.number == number]


def scaled(name='scaled', value=1.5, **changed):
    return curve(name, scale=str(value), scale_value=value, **changed)


def heads(**changed):
    return curve('heads', scale='HeadScale at 256', scale_value=None, **changed)


@pytest.mark.parametrize(('difference', 'holds'), [(0.04, True), (0.06, False), (-0.06, False)])
def test_parity_compares_the_loss_inside_the_training_length(difference, holds):
    pair = [curve('nope', floor=1.5 + difference), curve('rope', floor=1.5, **ROTARY)]
    claim = claims.parity(pair)
    assert claim.measured['nope_minus_rope_nats'] == pytest.approx(difference)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ('nope', 'rotary', 'holds'),
    [(90, 70, True), (70, 90, False), (90, 1e9, False), (30, 20, False)],
)
def test_nope_must_rise_later_than_rope_and_both_beyond_l(nope, rotary, holds):
    found = claims.onset([curve('nope', loss_bend=nope), curve('rope', loss_bend=rotary, **ROTARY)])
    assert found.holds is holds
    assert list(found.measured['nope']['onset']) == ['0.05', '0.1', '0.2']


def test_onset_is_reported_in_multiples_of_l():
    found = claims.onset([curve('nope', loss_bend=90)])
    assert found.measured['nope']['onset']['0.1'] == pytest.approx(90 * 2**0.1 / 64, abs=2 / 64)


@pytest.mark.parametrize(('entropy', 'holds'), [(90, True), (150, False), (1e9, False)])
def test_the_two_bends_must_meet(entropy, holds):
    found = claims.bends_meet([curve('nope', loss_bend=90, entropy_bend=entropy)])
    assert found.holds is holds


@pytest.mark.parametrize(('bend', 'holds'), [(200, True), (80, False)])
def test_rope_ntk_must_not_bend_up_to_twice_l(bend, holds):
    extended = curve('ntk', loss_bend=bend, entropy_bend=200, **NTK)
    assert claims.bends_meet([extended]).holds is holds


@pytest.mark.parametrize(
    ('loss', 'entropy', 'holds'), [(120, 120, True), (120, 80, False), (80, 120, False)]
)
def test_a_scale_must_move_both_bends_of_nope(loss, entropy, holds):
    found = claims.bends_move([curve(), scaled(loss_bend=loss, entropy_bend=entropy)])
    assert found.holds is holds


def test_a_scale_must_not_move_the_bends_of_rope():
    base = curve('rope', **ROTARY)
    stays = scaled('stays', **ROTARY)
    moves = scaled('moves', loss_bend=160, entropy_bend=160, **ROTARY)
    assert claims.bends_move([base, stays]).holds
    assert not claims.bends_move([base, stays, moves]).holds


@pytest.mark.parametrize(('harm', 'holds'), [(0.2, True), (0.0, False), (-0.1, False)])
def test_the_largest_scale_decides_about_short_positions(harm, holds):
    found = claims.short_positions(
        [curve(), scaled('small', 1.1, floor=2.0), scaled('large', 1.5, floor=1.5 + harm)]
    )
    assert found.holds is holds
    assert found.measured['change_inside_L_nats']['large'] == pytest.approx(harm)


@pytest.mark.parametrize(
    ('floor', 'slope', 'holds'), [(1.4, 0.5, True), (1.6, 0.1, False), (1.4, 2.0, False)]
)
def test_headscale_must_win_at_the_end_and_inside_l(floor, slope, holds):
    pair = [scaled(floor=1.5, loss_slope=1.0), heads(floor=floor, loss_slope=slope)]
    found = claims.headscale(pair)
    assert found.holds is holds
    values = found.measured['headscale_minus_uniform_nats']
    assert list(values) == ['1 L', '2 L', '4 L', 'mean over (0, L]']
    assert values['1 L'] == pytest.approx(floor - 1.5)


@pytest.mark.parametrize(('slope', 'holds'), [(2.0, True), (1.0, False)])
def test_headscale_entropy_is_compared_beyond_l(slope, holds):
    found = claims.headscale_entropy([scaled(entropy_slope=1.5), heads(entropy_slope=slope)])
    assert found.holds is holds


def test_claims_that_the_curves_cannot_bear_are_not_listed():
    only_scaled = claims.from_curves([scaled(), heads()])
    assert {c.number for c in only_scaled} == {7, None}
    only_base = claims.from_curves([curve()])
    assert {c.number for c in only_base} == {2, 3, None}
    assert by_number(only_base, 1) == []


def test_ranges_leave_out_what_was_not_measured():
    short = claims.ranges([curve(length=128)]).measured['a']['loss_nats']
    assert list(short) == ['(0, L]', '(L/2, L]', '(L, 2L]', 'all']
    assert short['(0, L]'] == pytest.approx(1.5)
