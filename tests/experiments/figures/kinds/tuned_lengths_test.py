"""Numbers and claims of the figure of fine-tuned models."""

from __future__ import annotations

import pytest

from experiments.figures import KINDS, FigureInput
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS, TUNED_PANELS, TUNED_ROLES

BASE = {'group': 'rope', 'label': 'RoPE'}


def claims(changes=(), panels=TUNED_PANELS, roles=TUNED_ROLES):
    """Claims where the losses of records below a prefix are raised at one length, [(prefix,
    index of MULTIPLES, nats)]."""
    runs = synthetic.tuned_runs(2)
    for prefix, index, amount in changes:
        for name in [n for n in runs if n.startswith(prefix)]:
            for measure in ('loss_window', 'loss_tail'):
                runs[name][measure][index] += amount
    given = FigureInput('f', runs, {'base': BASE, 'panels': panels, 'roles': roles})
    return KINDS['tuned_lengths'].draw(given).claims


def test_rows_name_panel_method_and_length():
    rows = KINDS['tuned_lengths'].draw(INPUTS['tuned_lengths']).rows
    assert {r['panel'] for r in rows} == {None, 'fair: 200 steps', 'raw: 1,000 steps'}
    assert {r['method'] for r in rows} == {None, 'PI', 'YaRN'}
    assert {r['tuned_over_L'] for r in rows} == {None, 2, 4, 8}


def test_claims_hold_as_built():
    works, fails, below, raw = claims()
    assert [c.holds for c in (works, fails, below, raw)] == [True] * 4
    cost = works.measured['largest tuned - base at L']['PI at 2 L (fair: 200 steps)']
    assert cost['mean'] == pytest.approx(0.06, abs=0.03)
    assert len(cost['by_seed']) == 2
    # 8 L is the longest length: nothing was measured at twice it.
    rises = fails.measured['smallest rise to twice the length']
    assert {name.split(' (')[0][-3:] for name in rises} == {'2 L', '4 L'}
    less = below.measured['highest YaRN - PI']['4 L (fair: 200 steps)']
    assert less['mean'] == pytest.approx(-0.06)
    less = raw.measured['highest raw - fair']['YaRN at 8 L']
    assert less['mean'] == pytest.approx(-0.06)


@pytest.mark.parametrize(
    ('change', 'failing'),
    [
        (('PI_fair_8', 4, 0.4), 0),  # inside its length, at 4 L
        (('PI_fair_2', 4, -1.2 - 0.4), 1),  # level at 4 L, twice its length
        (('YaRN_fair_2', 2, 0.05), 2),  # above PI, at its own length
        (('PI_raw_4', 4, 0.1), 3),  # above its fair twin
    ],
)
def test_each_claim_fails_where_one_curve_does(change, failing):
    assert [i for i, c in enumerate(claims([change])) if c.holds is False] == [failing]


def test_claims_whose_roles_nobody_plays_are_undecided_and_say_so():
    assert [c.holds for c in claims(roles={})] == [True, True, None, None]
    only_pi = [{'title': 'PI', 'curves': TUNED_PANELS[0]['curves'][2:3]}]
    works, *others = claims(panels=only_pi, roles={'pi': 'PI'})
    assert works.holds is True
    assert [c.measured['missing'] for c in others] == [
        'nothing was measured for: smallest rise to twice the length',
        "no method or panel has the role 'yarn'",
        "no method or panel has the role 'fair'",
    ]


def test_a_method_is_the_curves_of_one_name():
    curves = [{**c, 'method': 'any'} for c in TUNED_PANELS[0]['curves']]
    given = FigureInput(
        'f', synthetic.tuned_runs(1), {'base': BASE, 'panels': [{'curves': curves}]}
    )
    output = KINDS['tuned_lengths'].draw(given)
    assert {row['method'] for row in output.rows} == {None, 'any'}


@pytest.mark.parametrize(
    ('role', 'name', 'noun'), [('pi', 'fair: 200 steps', 'method'), ('raw', 'PI', 'panel')]
)
def test_roles_are_of_methods_and_of_panels(role, name, noun):
    options = {'base': BASE, 'panels': TUNED_PANELS, 'roles': {role: name}}
    with pytest.raises(ValueError, match=f"figure 'f': role '{role}' is given to the {noun}"):
        KINDS['tuned_lengths'].required('f', options)


def test_a_tuning_at_another_length_than_the_options_say_is_refused():
    given, name = INPUTS['tuned_lengths'], 'PI_raw_4/seed0'
    other = synthetic.stating(given.records[name], tuned_length=128)
    with pytest.raises(ValueError, match=r"say 4 L of 'PI_raw_4/seed0', whose tuned_length"):
        KINDS['tuned_lengths'].draw(synthetic.with_records(given, **{name: other}))


def test_the_tuned_length_must_be_measured():
    curves = [{'group': 'PI_fair_2', 'label': 'PI', 'method': 'PI', 'tuned': 5}]
    given = FigureInput(
        'f', synthetic.tuned_runs(1), {'base': BASE, 'panels': [{'curves': curves}]}
    )
    with pytest.raises(ValueError, match="'PI_fair_2' was tuned at 5 L, but measured at"):
        KINDS['tuned_lengths'].draw(given)
