"""Claims come out true and false where curves were built to make them so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures.claims import catalogue, positions
from experiments.figures.claims.decide import decide
from experiments.figures.read import position_curve
from experiments.figures.roles import Roles
from tests.experiments.figures import synthetic


def curve(name='a', **changed):
    return position_curve.read(name, synthetic.positions_records(**changed))


def scaled(name='scaled', value=1.5, **changed):
    return curve(name, lam=str(value), multiplier=value, **changed)


def heads(**changed):
    return curve('heads', multiplier=None, **changed)


def better():
    return heads(floor=1.4, loss_slope=0.5, entropy_slope=2.0)


def cast(**played):
    """Roles of curves: one, a list, or one by the multiple of L."""
    players, given = {}, {}
    for role, found in played.items():
        if isinstance(found, dict):
            given[role] = {multiple: c.name for multiple, c in found.items()}
            several = list(found.values())
        else:
            several = found if isinstance(found, list) else [found]
            given[role] = [c.name for c in several] if isinstance(found, list) else found.name
        players |= {c.name: c for c in several}
    return Roles('f', {'roles': given}, players)


def decided(listed, **played):
    found = decide(positions.RULES, cast(**played))
    return next(claim for claim in found if claim.id == listed.id)


@pytest.mark.parametrize(('difference', 'holds'), [(0.04, True), (0.06, False), (-0.06, False)])
def test_parity_compares_the_loss_inside_the_training_length(difference, holds):
    nope, rotary = curve('nope', floor=1.5 + difference), curve('rope', floor=1.5)
    claim = decided(catalogue.PARITY, base=nope, rotary=rotary)
    assert claim.measured['nope_minus_rope_nats'] == pytest.approx(difference)
    assert claim.holds is holds


@pytest.mark.parametrize(
    ('nope', 'rotary', 'holds'),
    [
        (72, 66, True),
        (66, 72, False),
        (72, 1e9, False),
        (30, 20, False),
        (110, 66, False),
        (90, 66, None),  # 1.46 L by the smallest threshold, 1.51 L by the middle one
    ],
)
def test_nope_must_rise_later_than_rope_and_both_where_the_paper_says(nope, rotary, holds):
    base, other = curve('nope', loss_bend=nope), curve('rope', loss_bend=rotary)
    found = decided(catalogue.ONSET, base=base, rotary=other)
    assert found.holds is holds
    assert list(found.measured['nope']['onset']) == ['0.05', '0.1', '0.2']
    assert [m['paper'] for m in found.measured.values()] == [1.2, 1.1]


def test_onset_is_reported_in_multiples_of_l():
    found = decided(catalogue.ONSET, base=curve('nope', loss_bend=90))
    assert found.measured['nope']['onset']['0.1'] == pytest.approx(90 * 2**0.1 / 64, abs=2 / 64)


def test_what_is_hard_in_the_text_moves_no_onset():
    """A bump that all models have at L, as of a text that is hard there."""
    given = {'base': curve('nope', loss_bend=78), 'rotary': curve('rope', loss_bend=72)}
    flat = curve('ntk', loss_bend=1e9, entropy_bend=1e9)
    assert decided(catalogue.ONSET, **given, ntk=flat).holds

    def bumped(one):
        bump = np.where((one.positions >= 62) & (one.positions < 72), 0.3, 0.0)
        return dataclasses.replace(one, loss=one.loss + bump)

    alone = decided(catalogue.ONSET, **{role: bumped(c) for role, c in given.items()})
    assert alone.holds is False
    found = decided(
        catalogue.ONSET, **{role: bumped(c) for role, c in given.items()}, ntk=bumped(flat)
    )
    assert found.verdict == 'undecided'
    onsets = found.measured['nope']['onset_beside_ntk']
    assert (
        onsets == decided(catalogue.ONSET, **given, ntk=flat).measured['nope']['onset_beside_ntk']
    )
    assert [n.what for n in found.numbers][-1] == 'RoPE beside RoPE-NTK from'


@pytest.mark.parametrize(('entropy', 'holds'), [(90, True), (150, False), (1e9, False)])
def test_the_two_bends_must_meet(entropy, holds):
    found = decided(catalogue.BENDS_MEET, base=curve(loss_bend=90, entropy_bend=entropy))
    assert found.holds is holds


def test_bends_that_depend_on_their_threshold_decide_nothing():
    # A slow rise passes a small threshold soon, and a large one late.
    apart = curve(loss_bend=66, entropy_bend=66, entropy_slope=0.3)
    assert decided(catalogue.BENDS_MEET, base=apart).verdict == 'undecided'
    moved = scaled(loss_bend=62, loss_slope=0.3, entropy_bend=160)
    base = curve(loss_bend=66, entropy_bend=66)
    rotary = {'rotary': curve('rope'), 'rotary_uniform': [scaled('stays')]}
    found = decided(catalogue.BENDS_MOVE, base=base, uniform=[moved], **rotary)
    assert found.verdict == 'undecided'


@pytest.mark.parametrize(('bend', 'holds'), [(200, True), (80, False)])
def test_rope_ntk_must_not_bend_up_to_twice_l(bend, holds):
    extended = curve('ntk', loss_bend=bend, entropy_bend=200)
    assert decided(catalogue.BENDS_MEET, ntk=extended).holds is holds


@pytest.mark.parametrize(
    ('loss', 'entropy', 'holds'), [(120, 120, True), (120, 80, False), (80, 120, False)]
)
def test_a_multiplier_must_move_both_bends_of_nope(loss, entropy, holds):
    """Without RoPE, whose bends have to stay, it can be refuted and not borne out."""
    moved = scaled(loss_bend=loss, entropy_bend=entropy)
    alone = decided(catalogue.BENDS_MOVE, base=curve(), uniform=[moved])
    assert alone.verdict == ('not measured' if holds else 'does not hold')
    assert "'rotary'" in alone.measured['missing' if holds else 'lacking']
    rotary = {'rotary': curve('rope'), 'rotary_uniform': [scaled('stays')]}
    both = decided(catalogue.BENDS_MOVE, base=curve(), uniform=[moved], **rotary)
    assert both.holds is holds


def test_a_multiplier_must_not_move_the_bends_of_rope():
    stays, moves = scaled('stays'), scaled('moves', loss_bend=160, entropy_bend=160)
    given = {'base': curve(), 'uniform': [scaled(loss_bend=120, entropy_bend=120)]}
    given |= {'rotary': curve('rope')}
    assert decided(catalogue.BENDS_MOVE, **given, rotary_uniform=[stays]).holds
    for one in (moves, scaled('one', loss_bend=160), scaled('other', entropy_bend=160)):
        found = decided(catalogue.BENDS_MOVE, **given, rotary_uniform=[stays, one])
        assert found.holds is False


@pytest.mark.parametrize(('harm', 'holds'), [(0.2, True), (0.0, False), (-0.1, False)])
def test_the_largest_multiplier_decides_about_short_positions(harm, holds):
    multipliers = [
        scaled('small', 1.1, floor=2.0),
        scaled('large', 1.5, floor=1.5 + harm),
        scaled('below', 0.9, floor=2.0),
    ]
    found = decided(catalogue.UNIFORM_HURTS, base=curve(), uniform=multipliers)
    assert found.holds is holds
    assert set(found.measured['change_inside_L_nats']) == {'small', 'large'}
    assert found.measured['change_inside_L_nats']['large'] == pytest.approx(harm)


@pytest.mark.parametrize(
    ('floor', 'slope', 'ahead', 'hurts_less'),
    [(1.4, 0.5, True, True), (1.6, 0.1, True, False), (1.4, 2.0, False, True)],
)
def test_headscale_must_win_at_the_end_and_hurt_less_inside_l(floor, slope, ahead, hurts_less):
    uniform, searched = scaled(floor=1.5, loss_slope=1.0), heads(floor=floor, loss_slope=slope)
    players = {'uniform': [uniform], 'headscale': {4: searched}}
    found = decided(catalogue.HEADSCALE_BEATS_UNIFORM, **players)
    assert found.holds is ahead
    values = found.measured['headscale_minus_uniform_nats']
    assert list(values) == ['1 L', '2 L', '4 L']
    assert values['1 L'] == pytest.approx(floor - 1.5)
    less = decided(catalogue.HEADSCALE_HURTS_LESS, **players)
    assert less.holds is hurts_less
    assert less.measured['headscale_minus_uniform_nats'] == pytest.approx(floor - 1.5)


def test_what_differs_by_less_than_a_level_decides_nothing():
    players = {'uniform': [scaled()], 'headscale': {4: heads()}}
    assert decided(catalogue.HEADSCALE_BEATS_UNIFORM, **players).holds is None
    assert decided(catalogue.HEADSCALE_HURTS_LESS, **players).holds is None
    assert decided(catalogue.HEADSCALE_ENTROPY, **players).holds is None


@pytest.mark.parametrize(('slope', 'holds'), [(2.0, True), (1.0, False)])
def test_headscale_entropy_is_compared_beyond_l(slope, holds):
    uniform, searched = scaled(entropy_slope=1.5), heads(entropy_slope=slope)
    found = decided(catalogue.HEADSCALE_ENTROPY, uniform=[uniform], headscale={4: searched})
    assert found.holds is holds


@pytest.mark.parametrize(
    ('played', 'decided'),
    [
        ({}, []),
        ({'base': curve()}, [2, 3]),
        ({'uniform': [scaled()], 'headscale': {4: better()}}, [7, None, 7]),
        ({'base': curve('b'), 'uniform': [scaled()]}, [2, 3, 4, 6]),
        ({'base': curve('b'), 'uniform': [scaled('low', 1.0)]}, [2, 3]),
    ],
)
def test_claims_whose_roles_nobody_plays_are_undecided_and_say_so(played, decided):
    found = decide(positions.RULES, cast(**played))
    ranges = found.pop([claim.id for claim in found].index('ranges'))
    assert [c.number for c in found if c.holds is not None] == decided
    for claim in found:
        assert (claim.holds is None) == ('missing' in claim.measured)
    assert (ranges.id, ranges.holds) == ('ranges', None)


def test_what_is_missing_is_named():
    assert decided(catalogue.PARITY, base=curve()).measured == {
        'missing': "no curve has the role 'rotary'"
    }
    below = decided(catalogue.UNIFORM_HURTS, base=curve('b'), uniform=[scaled('low', 0.9)])
    assert below.measured == {'missing': "no curve of the role 'uniform' has a multiplier above 1"}


def test_ranges_leave_out_what_was_not_measured():
    found = decide(positions.RULES, cast(base=curve(length=128)))
    short = next(c for c in found if c.id == 'ranges').measured['a']['loss_nats']
    assert list(short) == ['(0, L]', '(L/2, L]', '(L, 2L]', 'all']
    assert short['(0, L]'] == pytest.approx(1.5)
