"""Claims come out true and false where curves were built to make them so."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments.figures.claims import positions
from experiments.figures.claims.decide import decide
from experiments.figures.read import position_curve
from experiments.figures.roles import Roles
from tests.experiments.figures import synthetic

HOLDS, FAILS, OPEN, NOT = 'holds', 'does not hold', 'undecided', 'not measured'


def curve(**changed):
    return position_curve.read('', synthetic.positions_records(**changed))


def bends(loss=78, entropy=86, **changed):
    return curve(loss_bend=loss, entropy_bend=entropy, **changed)


def scaled(value=1.5, **changed):
    return curve(lam=str(value), multiplier=value, **changed)


def heads(**changed):
    return curve(multiplier=None, **changed)


def decided(**played):
    """Claims by id. played: a curve, a list of them, or one by the multiple of L, by role."""
    players, given = {}, {}

    def put(role: str, found) -> str:
        name = f'{role}{len(players)}'
        players[name] = dataclasses.replace(found, name=name)
        return name

    for role, found in played.items():
        if isinstance(found, dict):
            given[role] = {multiple: put(role, c) for multiple, c in found.items()}
        elif isinstance(found, list):
            given[role] = [put(role, c) for c in found]
        else:
            given[role] = put(role, found)
    claims = decide(positions.RULES, Roles('f', {'roles': given}, players))
    return {claim.id: claim for claim in claims}


def nope_and_rope(nope, rope):
    return {'base': curve(loss_bend=nope), 'rope': curve(loss_bend=rope)}


def moved(base=None, stays=True, **changed):
    """NoPE with a multiplier, and with `stays` RoPE, whose bends have to stay."""
    rope = {'rope': curve(), 'rope_uniform': [scaled()]} if stays else {}
    return {'base': base or curve(), 'uniform': [scaled(**changed)], **rope}


def searched(found, uniform=None):
    return {'uniform': [uniform or scaled()], 'headscale': {4: found}}


STEEP = scaled(floor=1.5, loss_slope=1.0)
OUTWARD = {'loss_bend': 120, 'entropy_bend': 120}
TABLE = [
    *(
        ('parity', {'base': curve(floor=1.5 + apart), 'rope': curve(floor=1.5)}, verdict)
        for apart, verdict in ((0.04, HOLDS), (0.06, FAILS), (-0.06, FAILS))
    ),
    ('parity', {'base': curve()}, NOT),
    # NoPE must rise later than RoPE, and both where the paper says.
    ('onset', nope_and_rope(72, 66), HOLDS),
    ('onset', nope_and_rope(66, 72), FAILS),
    ('onset', nope_and_rope(72, 1e9), FAILS),
    ('onset', nope_and_rope(30, 20), FAILS),
    ('onset', nope_and_rope(110, 66), FAILS),
    ('onset', nope_and_rope(90, 66), OPEN),  # 1.46 L by the smallest threshold, then 1.51 L
    # The two bends must meet, and those of RoPE-NTK not come up to twice L.
    ('bends_meet', {'base': bends(90, 90)}, HOLDS),
    ('bends_meet', {'base': bends(90, 150)}, FAILS),
    ('bends_meet', {'base': bends(90, 1e9)}, FAILS),
    ('bends_meet', {'ntk': bends(200, 200)}, HOLDS),
    ('bends_meet', {'ntk': bends(80, 200)}, FAILS),
    ('bends_meet', {'ntk': bends(200, 200, length=100)}, NOT),
    # A slow rise passes a small threshold soon, and a large one late.
    ('bends_meet', {'base': bends(66, 66, entropy_slope=0.3)}, OPEN),
    ('bends_move', moved(bends(66, 66), loss_bend=62, loss_slope=0.3, entropy_bend=160), OPEN),
    # A multiplier must move both bends of NoPE, none of RoPE; one alone can refute it.
    ('bends_move', moved(**OUTWARD), HOLDS),
    ('bends_move', moved(**OUTWARD, stays=False), NOT),
    ('bends_move', moved(loss_bend=120, entropy_bend=80), FAILS),
    ('bends_move', moved(loss_bend=80, entropy_bend=120, stays=False), FAILS),
    *(
        ('bends_move', moved(**OUTWARD) | {'rope_uniform': [scaled(), scaled(**one)]}, FAILS)
        for one in ({'loss_bend': 160, 'entropy_bend': 160}, {'loss_bend': 160})
    ),
    ('bends_move', moved(**OUTWARD) | {'rope_uniform': [scaled(entropy_bend=160)]}, FAILS),
    # The largest multiplier decides about short positions.
    *(
        (
            'uniform_hurts',
            {
                'base': curve(),
                'uniform': [
                    scaled(1.1, floor=2.0),
                    scaled(1.5, floor=1.5 + harm),
                    scaled(0.9, floor=2.0),
                ],
            },
            verdict,
        )
        for harm, verdict in ((0.2, HOLDS), (0.0, FAILS), (-0.1, FAILS))
    ),
    ('uniform_hurts', {'base': curve(), 'uniform': [scaled(0.9)]}, NOT),
    # HeadScale must win at the end, hurt less inside L, and have the higher entropy beyond it.
    ('headscale_beats_uniform', searched(heads(floor=1.4, loss_slope=0.5), STEEP), HOLDS),
    ('headscale_hurts_less', searched(heads(floor=1.4, loss_slope=0.5), STEEP), HOLDS),
    ('headscale_beats_uniform', searched(heads(floor=1.6, loss_slope=0.1), STEEP), HOLDS),
    ('headscale_hurts_less', searched(heads(floor=1.6, loss_slope=0.1), STEEP), FAILS),
    ('headscale_beats_uniform', searched(heads(floor=1.4, loss_slope=2.0), STEEP), FAILS),
    ('headscale_hurts_less', searched(heads(floor=1.4, loss_slope=2.0), STEEP), HOLDS),
    ('headscale_entropy', searched(heads(entropy_slope=2.0), scaled(entropy_slope=1.5)), HOLDS),
    ('headscale_entropy', searched(heads(entropy_slope=1.0), scaled(entropy_slope=1.5)), FAILS),
    # What differs by less than a level decides nothing.
    *(
        (name, searched(heads()), OPEN)
        for name in ('headscale_beats_uniform', 'headscale_hurts_less', 'headscale_entropy')
    ),
]


@pytest.mark.parametrize(('name', 'played', 'verdict'), TABLE)
def test_curves_decide(name, played, verdict):
    assert decided(**played)[name].verdict == verdict


def test_numbers_are_those_of_the_curves():
    found = decided(base=curve(floor=1.56), rope=curve(floor=1.5), uniform=[scaled(floor=1.7)])
    assert found['parity'].numbers[0].by_seed == pytest.approx([0.06])
    assert found['uniform_hurts'].numbers[0].by_seed == pytest.approx([0.14])
    onset = decided(base=curve(loss_bend=90))['onset'].measured['base0']
    assert onset['onset']['0.1'] == pytest.approx(90 * 2**0.1 / 64, abs=2 / 64)
    assert (list(onset['onset']), onset['paper']) == (['0.05', '0.1', '0.2'], 1.2)


def test_what_is_hard_in_the_text_moves_no_onset():
    """A bump that all models have at L, as of a text that is hard there."""
    given = nope_and_rope(78, 72) | {'ntk': bends(1e9, 1e9)}
    smooth = decided(**given)['onset']
    assert smooth.holds

    def bumped(one):
        bump = np.where((one.positions >= 62) & (one.positions < 72), 0.3, 0.0)
        return dataclasses.replace(one, loss=one.loss + bump)

    hard = {role: bumped(c) for role, c in given.items()}
    assert decided(base=hard['base'], rope=hard['rope'])['onset'].holds is False
    found = decided(**hard)['onset']
    assert found.verdict == OPEN
    onsets, expected = (c.measured['base0']['onset_beside_ntk'] for c in (found, smooth))
    assert onsets == expected
    assert found.numbers[-1].what == 'RoPE beside RoPE-NTK from'


@pytest.mark.parametrize(
    ('played', 'numbers'),
    [
        ({}, []),
        ({'base': curve()}, [2, 3]),
        (searched(heads(floor=1.4, loss_slope=0.5, entropy_slope=2.0)), [7, None, 7]),
        ({'base': curve(), 'uniform': [scaled()]}, [2, 3, 4, 6]),
        ({'base': curve(), 'uniform': [scaled(1.0)]}, [2, 3]),
    ],
)
def test_claims_whose_roles_nobody_plays_are_undecided_and_say_so(played, numbers):
    found = decided(**played)
    assert found.pop('ranges').verdict == 'reading'
    assert [c.number for c in found.values() if c.holds is not None] == numbers
    for claim in found.values():
        assert (claim.holds is None) == ('missing' in claim.measured)


def test_ranges_leave_out_what_was_not_measured():
    short = decided(base=curve(length=128))['ranges'].measured['base0']['loss_nats']
    assert list(short) == ['(0, L]', '(L/2, L]', '(L, 2L]', 'all']
    assert short['(0, L]'] == pytest.approx(1.5)
