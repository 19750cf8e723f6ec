"""Claims about passkey retrieval, where they hold and where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS, Decided, FigureInput
from experiments.figures.claims import passkey
from experiments.figures.claims.decide import decide
from experiments.figures.read import passkey_panel
from experiments.figures.roles import Roles
from tests.experiments.figures import synthetic
from tests.experiments.figures.synthetic import INPUTS

HOLDS, FAILS, OPEN, NOT = 'holds', 'does not hold', 'undecided', 'not measured'


def claims(runs, roles=None, paper=()) -> list[Decided]:
    """runs: by label. roles: by default the roles that labels are, one model each. paper: label ->
    percent that it prints."""
    if roles is None:
        several = ('nope', 'alibi')
        roles = {name: [name] if name in several else name for name in runs}
        roles = {name: played for name, played in roles.items() if name in passkey.ROLES}
    given = FigureInput('f', runs, {'roles': roles})
    entries = {n: {'record': n, 'label': n, 'paper': dict(paper).get(n)} for n in runs}
    panels = {n: passkey_panel.read(given, entry) for n, entry in entries.items()}
    return decide(passkey.RULES, Roles('f', given.options, panels, 'panel'))


def found(name: str, runs, roles=None, paper=()) -> Decided:
    return next(claim for claim in claims(runs, roles, paper) if claim.id == name)


def by_length(*values: float, **facts):
    """Records of one accuracy at every depth: the first of `values` up to 1 L, or eight lengths;
    then one value for each further length."""
    inside, *beyond = values
    lengths = np.array([inside] * 8 + beyond + [0.0] * (8 - len(beyond)))
    return synthetic.passkey_records(accuracy=np.repeat(lengths[:, None], 10, axis=1), **facts)


def depths(first, others):
    """Records of prompts to 2 L with these accuracies at the first fifth of depths and others."""
    accuracy = np.repeat(np.array([[first] * 2 + [others] * 8]), 16, axis=0)
    return synthetic.passkey_records(accuracy=accuracy, window=4096)


@pytest.mark.parametrize(
    ('shares', 'verdict'),
    [
        ({'full': 0.81, 'no_bound': 0.53, 'no_init': 0.26}, HOLDS),
        ({'full': 0.81, 'no_bound': 0.75, 'no_init': 0.26}, FAILS),
        ({'full': 0.81, 'no_bound': 0.53, 'no_init': 0.75}, FAILS),
        ({'full': 0.5, 'no_bound': 0.8, 'no_init': 0.8}, FAILS),
        ({'full': 0.81, 'no_init': 0.26}, NOT),
        ({'full': 0.81, 'no_bound': 0.9}, NOT),
        ({'full': 0.4, 'no_bound': 0.1, 'no_init': 0.1}, NOT),  # it repeats fewer than half
        ({'full': 0.81}, NOT),
        ({'no_bound': 0.53, 'no_init': 0.26}, NOT),
    ],
)
def test_initialisation_and_bound_matter_where_the_method_is_better(shares, verdict):
    claim = found('parts_matter', {name: by_length(share) for name, share in shares.items()})
    assert claim.verdict == verdict
    for number in claim.numbers:
        without = 'no_bound' if 'bound' in number.what else 'no_init'
        assert number.by_seed[0] == pytest.approx(100 * (shares['full'] - shares[without]))


def test_the_ablation_must_have_prompts_inside_its_window():
    runs = {'full': by_length(0.81), 'no_bound': by_length(0.3)}
    assert found('parts_matter', {**runs, 'no_init': by_length(0.26)}).verdict == HOLDS
    short = {**runs, 'no_init': by_length(0.26, window=128)}
    assert found('parts_matter', short).verdict == NOT


@pytest.mark.parametrize('attribute', ['window', 'max_length', 'template'])
def test_panels_of_roles_were_asked_the_same_prompts(attribute):
    runs = {name: by_length(0.5) for name in ('full', 'no_init')}
    runs['no_init'].attributes[attribute] = 'brief' if attribute == 'template' else 4095
    panels = [{'record': name, 'label': name} for name in runs]
    options = {'panels': panels, 'roles': {role: role for role in runs}}
    with pytest.raises(ValueError, match=f"figure 'f': the runs differ in '{attribute}'"):
        KINDS['passkey_maps'].draw(FigureInput('f', runs, options))


@pytest.mark.parametrize(
    ('models', 'reach', 'verdict'),
    [
        ([by_length(1.0, 1.0, 1.0, 1.0, 0.5)], 1.5, HOLDS),
        ([by_length(1.0, 1.0, 1.0, 1.0, 0.49)], 1.375, FAILS),
        ([by_length(1.0, *[0.5] * 8)], 2.0, HOLDS),
        ([by_length(1.0, 0.4, *[1.0] * 7)], 1.0, FAILS),  # after a gap it does not count
        ([by_length(*[1.0] * 9), by_length(1.0)], 1.0, FAILS),
        # Prompts that end before the claim decide nothing unless they fail.
        ([by_length(*[1.0] * 9, window=3072)], 4 / 3, OPEN),
        ([by_length(1.0, window=3072)], 2 / 3, FAILS),
        ([by_length(*[1.0] * 9, window=2730)], 4096 / 2730, HOLDS),
        ([by_length(*[1.0] * 9, window=3072), by_length(1.0)], 1.0, FAILS),
        ([by_length(*[1.0] * 9, window=3072), by_length(*[1.0] * 9)], 4 / 3, OPEN),
    ],
)
def test_every_model_without_position_encoding_must_reach_beyond_its_window(models, reach, verdict):
    runs = {f'm{i}': made for i, made in enumerate(models)}
    # An ablation is not what the claim is about.
    roles = {'nope': list(runs), 'no_init': 'cut'}
    claim = found('passkey_reach', {**runs, 'cut': by_length(1.0)}, roles)
    assert claim.verdict == verdict and set(claim.measured) == set(runs)
    assert claim.numbers[0].by_seed[0] == pytest.approx(reach)
    assert found('passkey_reach', runs, {}).verdict == NOT
    nothing = found('passkey_reach', {**runs, 'm0': by_length(0.4)}, roles)  # learned
    assert nothing.verdict == NOT and 'm0' in nothing.measured['missing']
    assert found('passkey_reach', runs, {'nope': [*runs, 'not measured']}).verdict == NOT


def test_seeds_that_differ_decide_nothing():
    _, beyond, inside, *_ = KINDS['passkey_maps'].draw(INPUTS['passkey_maps']).claims
    assert [beyond.holds, inside.holds] == [None, None]
    # Accuracy falls from 1 (or 0.9) at the window to none at twice that; tenths are rounded.
    assert beyond.measured['HeadScale at 2 L']['by_seed'] == [1.5, 1.375]
    assert beyond.measured['HeadScale at 2 L']['reach_over_window'] == 1.375


@pytest.mark.parametrize(
    ('paper', 'verdict'),
    [({'NoPE': 86, 'RoPE': 81}, HOLDS), ({'NoPE': 84}, FAILS), ({}, NOT), ({'none': 50}, NOT)],
)
def test_the_mean_inside_the_window_is_the_papers_where_it_prints_one(paper, verdict):
    runs = {'NoPE': by_length(0.95), 'RoPE': by_length(0.9, **synthetic.ROPE)}
    claim = found('passkey_inside', runs | {'none': by_length(0.0, window=128)}, {}, paper)
    assert claim.verdict == verdict
    if 'RoPE' in paper:
        assert claim.measured["furthest from the paper's mean"]['RoPE']['mean'] == pytest.approx(9)


@pytest.mark.parametrize(
    ('values', 'verdict'),
    [
        ((0.9, 0.3, 0.0), HOLDS),  # only the length just beyond L is not none
        ((0.9, 0.3, 0.05, 0.0), HOLDS),
        ((0.9, 0.3, 0.2, 0.0), FAILS),
        ((0.9, 0.0, 0.0, 0.0, 0.4), FAILS),
        ((0.3,), NOT),  # it has no keys to lose
    ],
)
def test_rope_fails_at_once_where_few_keys_are_repeated_from_five_quarters_on(values, verdict):
    claim = found('rope_passkey_fails', {'rope': by_length(*values)})
    assert claim.verdict == verdict
    assert verdict == NOT or claim.headline.startswith('most keys repeated, at ')


@pytest.mark.parametrize(('reach', 'verdict'), [(3, HOLDS), (4, FAILS), (8, FAILS)])
def test_alibi_fails_where_it_works_to_less_than_one_and_a_half_windows(reach, verdict):
    runs = {'a': by_length(0.9, *[0.8] * reach), 'b': by_length(0.9)}
    claim = found('alibi_passkey_fails', runs, {'alibi': ['a', 'b']})
    whole = ' (the end of its prompts)' if reach == 8 else ''
    assert claim.verdict == verdict
    assert claim.headline == f'furthest reach, a {1 + reach / 8:.2f} windows{whole}'
    assert found('alibi_passkey_fails', {'alibi': by_length(0.3)}).verdict == NOT


@pytest.mark.parametrize(
    ('made', 'verdict'),
    [
        (depths(0.9, 0.1), HOLDS),
        (depths(0.59, 0.5), FAILS),
        (depths(0.6, 0.7), FAILS),
        (depths(1.0, 0.7), FAILS),
        (depths(0.49, 0.0), NOT),  # it finds few keys at the beginning
        (by_length(0.9), NOT),  # prompts beyond the training length decide
    ],
)
def test_keys_are_found_at_the_beginning_alone_where_the_others_are_not(made, verdict):
    claim = found('no_init_beginning', {'no_init': made})
    assert claim.verdict == verdict
    assert verdict != HOLDS or claim.headline == 'keys at the beginning 90.0 %; others 10.0 %'
