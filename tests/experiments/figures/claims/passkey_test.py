"""Claims about passkey retrieval, where they hold and where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, FigureInput
from experiments.figures.claims import passkey
from experiments.figures.claims.decide import decide
from experiments.figures.read import passkey_panel
from experiments.figures.roles import Roles
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS, PASSKEY_PANELS


def claims(runs, roles=None, paper=()):
    """By number. runs: label -> records. paper: label -> percent that it prints."""
    given = FigureInput('f', runs, {'roles': roles})
    entries = {n: {'record': n, 'label': n, 'paper': dict(paper).get(n)} for n in runs}
    panels = {n: passkey_panel.read(given, entry) for n, entry in entries.items()}
    found = decide(passkey.RULES, Roles('f', given.options, panels, 'panel'))
    assert len({claim.id for claim in found}) == len(found)
    return {claim.number or claim.id: claim for claim in found}


def by_length(values, **facts):
    """Records of one accuracy at every depth: the first of `values` up to 1 L, or eight lengths;
    then one value for each further length."""
    inside, *beyond = values
    lengths = np.array([inside] * 8 + beyond + [0.0] * (8 - len(beyond)))
    return synthetic.passkey_records(accuracy=np.repeat(lengths[:, None], 10, axis=1), **facts)


def ablations(full, no_bound, no_init):
    shares = {'full': full, 'no_bound': no_bound, 'no_init': no_init}
    runs = {k: by_length([share]) for k, share in shares.items() if share is not None}
    return claims(runs, {role: role for role in runs})


@pytest.mark.parametrize(
    ('shares', 'holds'),
    [
        ((0.81, 0.53, 0.26), True),
        ((0.81, 0.75, 0.26), False),
        ((0.81, 0.53, 0.75), False),
        ((0.5, 0.8, 0.8), False),
        ((0.81, None, 0.26), True),
        ((0.81, 0.9, None), False),
    ],
)
def test_initialisation_and_bound_matter_where_the_method_is_better(shares, holds):
    found = ablations(*shares)[8]
    assert found.holds is holds
    paper = {'full': 0.81, 'no_bound': 0.53, 'no_init': 0.26}
    asked = {r: s for r, s in zip(paper, shares, strict=True) if s is not None}
    for role, share in asked.items():
        inside = found.measured['inside_window'][role]
        assert inside['mean'] == pytest.approx(share)
        assert inside['paper'] == paper[role]
        if role != 'full':
            drop = found.measured['full_minus_other_points'][role]['mean']
            assert drop == pytest.approx(100 * (shares[0] - share))


@pytest.mark.parametrize(
    'roles', [None, {}, {'full': 'full'}, {'full': 'short', 'no_init': 'no_init'}]
)
def test_claim_8_needs_the_method_and_an_ablation_inside_their_windows(roles):
    runs = {name: by_length([0.5]) for name in ('full', 'no_init')}
    runs['short'] = by_length([0.5], window=128)
    if roles and 'no_init' in roles:
        runs['no_init'] = by_length([0.5], window=128)
    assert claims(runs, roles)[8].holds is None
    assert 'missing' in claims(runs, roles)[8].measured


def test_claim_8_is_undecided_where_the_ablations_are_missing():
    panels = [
        {'record': 'full', 'label': 'full'},
        {'label': 'no_init', 'missing': 'not trained yet'},
    ]
    options = {'panels': panels, 'roles': {p['label']: p['label'] for p in panels}}
    output = KINDS['passkey_maps'].draw(FigureInput('f', {'full': by_length([1.0])}, options))
    assert [claim.number for claim in output.claims] == [8, 10, None, None, None, None]
    assert {claim.holds for claim in output.claims} == {None}


@pytest.mark.parametrize('attribute', ['window', 'max_length', 'template'])
def test_panels_of_roles_were_asked_the_same_prompts(attribute):
    runs = {name: by_length([0.5]) for name in ('full', 'no_init')}
    runs['no_init'].attributes[attribute] = 'brief' if attribute == 'template' else 4095
    with pytest.raises(ValueError, match=f"figure 'f': the runs differ in '{attribute}'"):
        KINDS['passkey_maps'].draw(
            FigureInput(
                'f',
                runs,
                {
                    'panels': [{'record': name, 'label': name} for name in runs],
                    'roles': {role: role for role in runs},
                },
            )
        )


@pytest.mark.parametrize(
    ('values', 'reach', 'holds'),
    [
        ((1.0, 1.0, 1.0, 1.0, 0.5), 1.5, True),
        ((1.0, 1.0, 1.0, 1.0, 0.49), 1.375, False),
        ((1.0, *[0.5] * 8), 2.0, True),
        # What comes back after a gap does not count.
        ((1.0, 0.4, *[1.0] * 7), 1.0, False),
        ((0.4, *[1.0] * 8), 0.0, False),
    ],
)
def test_passkey_reaches_beyond_the_window(values, reach, holds):
    found = claims({'NoPE': by_length(values)}, {'nope': ['NoPE']})[10]
    assert found.holds is holds
    assert found.measured == {
        'NoPE': {'reach_over_window': reach, 'by_seed': [reach], 'measured_up_to': 2.0}
    }


def test_every_model_without_position_encoding_must_reach_beyond_its_window():
    good, bad = by_length([1.0] * 9), by_length([1.0])
    rotary = by_length([1.0], **synthetic.ROTARY)
    one, both = {'nope': ['NoPE']}, {'nope': ['NoPE', 'HeadScale']}
    assert claims({'NoPE': good, 'RoPE': rotary}, one)[10].holds is True
    assert claims({'NoPE': good, 'HeadScale': bad}, both)[10].holds is False
    assert claims({'RoPE': rotary})[10].measured == {'missing': "no panel has the role 'nope'"}
    # An ablation is not what the claim is about.
    ablated = {**one, 'full': 'NoPE', 'no_init': 'cut'}
    found = claims({'NoPE': good, 'cut': bad}, ablated)[10]
    assert found.holds is True
    assert set(found.measured) == {'NoPE'}
    # One that could not be measured says so in the caption.
    assert claims({'NoPE': good}, both)[10].holds is True


@pytest.mark.parametrize(
    ('window', 'beyond', 'holds'), [(3072, 1.0, None), (3072, 0.0, False), (2730, 1.0, True)]
)
def test_prompts_that_end_before_the_claim_decide_nothing_unless_they_fail(window, beyond, holds):
    records = by_length([1.0, *[beyond] * 8], window=window)
    assert claims({'NoPE': records}, {'nope': ['NoPE']})[10].holds is holds


@pytest.mark.parametrize(
    ('paper', 'holds'), [({'NoPE': 86, 'RoPE': 81}, True), ({'NoPE': 84}, False)]
)
def test_the_mean_inside_the_window_is_the_papers_where_it_prints_one(paper, holds):
    runs = {'NoPE': by_length([0.95]), 'RoPE': by_length([0.9], **synthetic.ROTARY)}
    runs['no cell'] = by_length([0.0], window=128)
    found = claims(runs, paper=paper)['passkey_inside']
    assert found.holds is holds
    assert set(found.measured) == {'NoPE', 'RoPE'}
    assert found.measured['RoPE']['mean'] == pytest.approx(0.9)
    assert {name for name, m in found.measured.items() if 'paper' in m} == set(paper)


def test_without_a_printed_mean_inside_the_window_nothing_is_measured():
    found = claims({'NoPE': by_length([0.95])}, paper={})['passkey_inside']
    assert found.measured == {'missing': 'the paper prints no mean of the models that are drawn'}


def test_a_panel_without_cells_inside_its_window_has_no_reading():
    found = claims({'NoPE': by_length([1.0], window=128)})['passkey_inside']
    assert found.measured == {'missing': 'no panel has prompts inside its window'}


def test_seeds_are_given_one_by_one():
    ablation, beyond, inside, *_ = KINDS['passkey_maps'].draw(INPUTS['passkey_maps']).claims
    assert [ablation.number, beyond.number, inside.number] == [8, 10, None]
    # The two seeds reach differently far, and the interval of their distance from the printed mean
    # is wide.
    assert [ablation.holds, beyond.holds, inside.holds] == [True, None, None]
    full = ablation.measured['inside_window']['full']
    assert full == {
        'mean': pytest.approx(0.95),
        'by_seed': pytest.approx([1, 0.9]),
        'paper': 0.81,
    }
    # Accuracy falls from 1 (or 0.9) at the window to none at twice that; tenths are rounded.
    assert beyond.measured['HeadScale at 2 L']['by_seed'] == [1.5, 1.375]
    assert beyond.measured['HeadScale at 2 L']['reach_over_window'] == 1.375
    assert inside.measured['HeadScale at 2 L']['paper'] == 0.81
    assert set(inside.measured) == {panel['label'] for panel in PASSKEY_PANELS[:3]}


@pytest.mark.parametrize(
    ('beyond', 'holds'),
    [
        ([0.3, 0.0], True),  # only the length just beyond L is not none
        ([0.3, 0.05, 0.0], True),
        ([0.3, 0.2, 0.0], False),
        ([0.0, 0.0, 0.0, 0.4], False),
    ],
)
def test_rotary_fails_at_once_where_few_keys_are_repeated_from_five_quarters_on(beyond, holds):
    found = claims({'r': by_length([0.9, *beyond])}, {'rotary': 'r'})['rotary_passkey_fails']
    assert found.holds is holds
    assert found.headline.startswith('most keys repeated, at ')


def test_alibi_fails_where_it_works_to_less_than_one_and_a_half_windows():
    for reach, holds in ((3, True), (4, False), (8, False)):
        runs = {'a': by_length([0.9] + [0.8] * reach), 'b': by_length([0.9])}
        found = claims(runs, {'alibi': ['a', 'b']})['alibi_passkey_fails']
        assert found.holds is holds
        whole = ' (the end of its prompts)' if reach == 8 else ''
        assert found.headline == f'furthest reach, a {1 + reach / 8:.2f} windows{whole}'


@pytest.mark.parametrize('role', ['rotary', 'alibi'])
def test_a_model_that_repeats_no_keys_inside_its_window_has_none_to_lose(role):
    played = 'a' if role == 'rotary' else ['a']
    found = claims({'a': by_length([0.3])}, {role: played})[f'{role}_passkey_fails']
    assert (found.holds, found.verdict) == (None, 'not measured')
    assert "'a' repeats 30 % of the keys inside its window" in found.measured['missing']


def depths(first, others):
    """Records of prompts to 2 L with these accuracies at the first fifth of depths and others."""
    accuracy = np.repeat(np.array([[first] * 2 + [others] * 8]), 16, axis=0)
    return synthetic.passkey_records(accuracy=accuracy, window=4096)


@pytest.mark.parametrize(
    ('first', 'others', 'holds'),
    [(0.9, 0.1, True), (0.59, 0.5, False), (0.6, 0.7, False), (1.0, 0.7, False)],
)
def test_keys_are_found_at_the_beginning_alone_where_the_others_are_not(first, others, holds):
    found = claims({'n': depths(first, others)}, {'no_init': 'n'})['no_init_beginning']
    assert found.holds is holds
    said = f'keys at the beginning {100 * first:.1f} %; others {100 * others:.1f} %'
    assert found.headline == said


@pytest.mark.parametrize(('first', 'others'), [(0.19, 0.1), (0.1, 0.4), (0.49, 0.0)])
def test_a_model_that_finds_few_keys_at_the_beginning_decides_nothing(first, others):
    found = claims({'n': depths(first, others)}, {'no_init': 'n'})['no_init_beginning']
    assert found.verdict == 'not measured'
    said = f"'n' repeats {100 * first:.0f} % of the keys at the beginning, not 50 %"
    assert found.measured == {'missing': said}


def test_the_full_method_must_repeat_keys_for_its_parts_to_matter():
    runs = {'f': by_length([0.4]), 'b': by_length([0.1]), 'i': by_length([0.1])}
    roles = {'full': 'f', 'no_bound': 'b', 'no_init': 'i'}
    found = claims(runs, roles)[8]
    assert found.verdict == 'not measured' and "'f' repeats 40 %" in found.measured['missing']
    assert claims(runs | {'f': by_length([0.6])}, roles)[8].holds


def test_the_beginning_is_decided_by_prompts_beyond_the_training_length():
    found = claims({'n': by_length([0.9])}, {'no_init': 'n'})['no_init_beginning']
    assert found.verdict == 'not measured'
