"""Roles in the options of a figure: accepted ones, their players, and what is said otherwise."""

from __future__ import annotations

import pathlib
import re

import pytest

from experiments.figures import KINDS, roles
from experiments.figures.claims import (
    ablations,
    code_models,
    frontier,
    keys,
    laws,
    lengths,
    passkey,
    perplexity,
    positions,
    scores,
)
from experiments.figures.kinds import factor_grid, head_effects, tuned_lengths
from experiments.figures.kinds.tables import longbench
from experiments.figures.roles import Roles, Shape, Undecided

ACCEPTED = roles.parts(
    {'base': Shape.ONE, 'uniform': Shape.SEVERAL, 'headscale': Shape.BY_MULTIPLE}, ['a', 'b', 'c']
)


def of(given):
    return Roles('f', {'roles': given}, {'a': 1, 'b': 2})


@pytest.mark.parametrize('given', [None, {}, {'base': 'a', 'uniform': ('a', 'b')}])
def test_roles_may_be_left_out_and_shared(given):
    roles.check('f', {'roles': given}, ACCEPTED)
    roles.check('f', {}, ACCEPTED)


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ({'best': 'a'}, "unknown key 'best' in roles; accepted"),
        ({'base': 'd'}, r"role 'base' is given to the curve 'd'; the curves are \['a', 'b', 'c'\]"),
        ({'uniform': ['a', 'd']}, "role 'uniform' is given to the curve 'd'"),
        ({'uniform': 'a'}, "role 'uniform' must be a list of names, got 'a'"),
        ({'headscale': {4: 'd'}}, "role 'headscale' is given to the curve 'd'"),
        ({'headscale': 'a'}, "role 'headscale' must be {multiple of L: label}, got 'a'"),
        ({'headscale': {'long': 'a'}}, "role 'headscale' must be {multiple of L: label}"),
    ],
)
def test_what_does_not_fit_is_named_before_anything_has_run(given, message):
    with pytest.raises(ValueError, match=f"figure 'f'.*{message}"):
        roles.check('f', {'roles': given}, ACCEPTED)


def test_players_are_found_by_role():
    found = of({'base': 'b', 'uniform': ['b', 'a'], 'headscale': {'8': 'a', '1.5': 'b'}})
    assert found['base'] == found.get('base') == 2
    assert found.several('uniform') == [2, 1]
    # From JSON multiples come as texts.
    assert list(found.by_multiple('headscale').items()) == [(1.5, 2), (8.0, 1)]


def test_a_role_that_nobody_plays_is_undecided():
    found = of({'uniform': []})
    assert found.get('base') is None
    for ask in (found.__getitem__, found.several, found.by_multiple):
        with pytest.raises(Undecided, match="no curve has the role 'uniform'"):
            ask('uniform')


def test_a_player_without_records_is_undecided():
    found = of({'base': 'c', 'uniform': ['a', 'c'], 'headscale': {4: 'c'}})
    assert found.get('base') is None
    with pytest.raises(Undecided, match="'c', of the role 'uniform', was not measured"):
        found.several('uniform')
    with pytest.raises(Undecided, match="'c', of the role 'base', was not measured"):
        _ = found['base']
    with pytest.raises(Undecided, match="'c', of the role 'headscale'"):
        found.by_multiple('headscale')


ROLES = {
    'entropy_loss': positions.ROLES,
    'length_curves': {**lengths.ROLES, **laws.ROLES, **code_models.ROLES},
    'factor_grid': {**factor_grid.METHODS, **factor_grid.GROUPS},
    'tuned_lengths': {**tuned_lengths.METHODS, **tuned_lengths.BUDGETS},
    'perplexity_table': perplexity.ROLES,
    'commonsense_table': scores.ROLES,
    'longbench_table': longbench.ROLES,
    'ablation_table': ablations.ROLES,
    'passkey_maps': passkey.ROLES,
    'key_curves': keys.ROLES,
    'frontier': frontier.ROLES,
    'reach': {frontier.SPLIT: frontier.ROLES[frontier.SPLIT]},
    'head_effects': head_effects.ROLES,
}


@pytest.mark.parametrize('kind', KINDS)
def test_the_readme_names_every_role_that_a_figure_accepts(kind):
    page = pathlib.Path(roles.__file__).with_name('README.md').read_text()
    table = page.partition('\n## Roles\n')[2]
    row = re.search(rf'^\| `{kind}` \|[^|]*\|([^|]*)\|', table, re.MULTILINE)
    named = re.findall(r'`(\w+)`', row[1]) if row else []
    assert sorted(named) == sorted(ROLES.get(kind, {}))
