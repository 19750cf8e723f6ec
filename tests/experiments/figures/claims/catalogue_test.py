"""The list of claims: complete, each once, each decided somewhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

from experiments.figures import by_kind, claims, kinds
from experiments.figures.claims.catalogue import CLAIMS, SOURCES
from experiments.figures.claims.decide import Every, Rule, decide
from experiments.figures.claims.headline import number
from experiments.figures.claims.verdict import ABOVE, AT_LEAST, AT_MOST, BELOW, NEAR, Bound
from experiments.figures.roles import Undecided

ALL = [rule for rules in by_kind.RULES.values() for rule in rules]


def test_the_eleven_claims_are_listed_with_the_papers_words():
    assert sum(map(len, SOURCES.values())) == len(CLAIMS)
    assert {claim.number for claim in CLAIMS.values()} == {*range(1, 12), None}
    assert all(claim.paper for claim in CLAIMS.values() if claim.number is not None)
    words = [claim.paper for claim in CLAIMS.values() if claim.paper]
    assert len(set(words)) == len(words)
    assert all(0 < len(claim.short) <= 40 for claim in CLAIMS.values())
    assert len({claim.short for claim in CLAIMS.values()}) == len(CLAIMS)
    assert all(len(claim.printed) <= 28 for claim in CLAIMS.values())


def test_every_claim_is_decided_somewhere_and_none_that_is_not_listed():
    assert {rule.id for rule in ALL} == set(CLAIMS)


def test_statements_say_the_threshold_that_decides():
    """As a number, a word, or a share in percent. Of parts a statement is made with theirs."""
    words = {1: 'one', 4: 'four'}
    for rule in ALL:
        for name, value in {} if rule.parts else rule.claim.thresholds.items():
            forms = f'{value:g}', f'{100 * value:g} %', words.get(value, f'{value:g}')
            said = rf'(?<![\w.^])({"|".join(map(re.escape, forms))})(?!\w|\.\d)'
            assert re.search(said, rule.statement), (rule.id, name)


@pytest.mark.parametrize(
    ('bound', 'found', 'verdict', 'headline'),
    [
        (Bound(ABOVE, 'nats'), {'a': 0.06, 'b': 0.2}, 'holds', 'least, a 0.060 nats'),
        (Bound(ABOVE, 'nats'), {'a': 0.06, 'b': 0.04}, 'does not hold', 'least, b 0.040 nats'),
        (Bound(ABOVE, 0, 'nats'), {'a': 0.04, 'b': 9}, 'undecided', 'least, a 0.040 nats'),
        (Bound(ABOVE, 0, 'nats'), {'a': 0.04, 'b': -9}, 'does not hold', 'least, b -9.000 nats'),
        (Bound(BELOW, 'nats'), {'a': 0.04, 'b': 0.03}, 'holds', 'least, a 0.040 nats'),
        (Bound(NEAR, 'nats'), {'a': 0.03, 'b': -0.04}, 'holds', 'least, b -0.040 nats'),
        (Bound(NEAR, 'nats'), {'': -0.06}, 'does not hold', 'least -0.060 nats'),
        (
            Bound(NEAR, 'nats'),
            {'a': np.array([-1.0, 1.5]), 'b': -0.06, 'c': 0.01},
            'does not hold',
            'least, b -0.060 nats',
        ),
        (
            Bound(NEAR, 1, 'nats'),
            {'a': 0.98, 'b': np.array([-1.0, 1.5])},
            'undecided',
            'least, a 0.980 nats',
        ),
        (
            Bound(NEAR, 1),
            {'a': 0.9, 'b': np.array([-1.0, 1.5])},
            'undecided',
            'least, b 0.250 nats [-15.632, 16.133]',
        ),
        (Bound(AT_LEAST, 0), {'a': 1, 'b': 2}, 'holds', 'least, a 1.000 nats'),
        (Bound(AT_MOST, 0), {'a': -1, 'b': -2}, 'holds', 'least, a -1.000 nats'),
        (
            Bound(ABOVE, 0),
            {'a': np.array([-1.0, 1.5]), 'b': 9.0},
            'undecided',
            'least, a 0.250 nats [-15.632, 16.133]',
        ),
        (Bound(ABOVE, 0), {}, 'not measured', ''),
    ],
)
def test_every_number_must_lie_on_its_side_and_the_hardest_one_is_told(
    bound, found, verdict, headline
):
    rule = Rule('parity', 'The number', Every(lambda shown: shown, bound, 'least', name='nats'))
    (claim,) = decide([rule], found)
    assert (claim.verdict, claim.headline) == (verdict, headline)
    assert claim.statement.startswith(f'The number: {rule.parts[0].bound.said("nats")}; ')
    assert (claim.number, claim.paper) == (1, CLAIMS['parity'].paper)


def test_several_parts_must_all_hold_and_those_that_were_measured_can_refute_alone():
    def find(shown, key):
        if shown.get(key) is None:
            raise Undecided(f'no {key}')
        return shown[key]

    parts = [
        Every(lambda shown, key=key: find(shown, key), bound, key, each=True)
        for key, bound in (('up', Bound(ABOVE, 0)), ('down', Bound(BELOW, 0)))
    ]
    rule, nothing = Rule('parity', 'Both', tuple(parts)), 'nothing was measured for: down'
    for shown, verdict, lacking in (
        ({'up': {'a': 1}, 'down': {'b': -1}}, 'holds', None),
        ({'up': {'a': 1}, 'down': {'b': 1}}, 'does not hold', None),
        ({'up': {'a': 1}, 'down': {}}, 'not measured', nothing),
        ({'up': {'a': 1}}, 'not measured', 'no down'),
        ({'up': {'a': np.array([-1.0, 1.5])}}, 'not measured', 'no down'),
        ({'up': {'a': -1}, 'down': {}}, 'does not hold', nothing),
        ({'up': {'a': -1}}, 'does not hold', 'no down'),
        ({'down': {'a': 1}}, 'does not hold', 'no up'),
        ({}, 'not measured', 'no up; no down'),
    ):
        (claim,) = decide([rule], shown)
        assert claim.verdict == verdict
        assert claim.measured.get('missing' if claim.holds is None else 'lacking') == lacking
        assert bool(claim.numbers) == (claim.holds is not None)


def test_every_threshold_is_read_where_its_claim_is_decided():
    """As the limit or margin of a number, or by its name in the module of the rules."""
    unread = {(claim.id, name) for claim in CLAIMS.values() for name in claim.thresholds}
    modules = (
        importlib.import_module(found.name)
        for package in (claims, kinds)
        for found in pkgutil.walk_packages(package.__path__, f'{package.__name__}.')
    )
    for module in modules:
        nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
        read = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
        for node in nodes:
            if isinstance(node, ast.comprehension) and isinstance(node.iter, ast.Tuple):
                read += node.iter.elts
        names = {node.value for node in read if isinstance(node, ast.Constant)}
        decided = [x for x in vars(module).values() if isinstance(x, tuple)]
        for rule in {r.id: r for rules in decided for r in rules if isinstance(r, Rule)}.values():
            given = rule.measure if isinstance(rule.measure, tuple) else (rule.measure,)
            bounds = [part.bound for part in given if isinstance(part, Every)]
            named = names | {name for bound in bounds for name in (bound.limit, bound.margin)}
            unread -= {(rule.id, name) for name in named}
    assert not unread


def test_a_function_that_lacks_something_says_what_and_a_reading_decides_nothing():
    def measure(shown: int):
        if shown < 0:
            raise Undecided('there is nothing')
        return {'number': shown}, None, (number('it is', shown, 'L'),)

    for name, shown, measured, verdict in (
        ('parity', 0, {'number': 0}, 'undecided'),
        ('parity', -1, {'missing': 'there is nothing'}, 'not measured'),
        ('lowest', 1, {'number': 1}, 'reading'),
    ):
        (claim,) = decide([Rule(name, 'a statement', measure)], shown)
        assert (claim.measured, claim.verdict, claim.holds) == (measured, verdict, None)


@pytest.mark.parametrize(
    ('options', 'claims'),
    [
        ({'kind': 'entropy_loss', 'roles': {'base': 'a', 'rope': 'b'}}, {'parity', 'onset'}),
        ({'kind': 'length_curves', 'roles': {'headscale': {4: 'a', 5: 'b'}}}, {'lowest'}),
        ({'kind': 'length_curves', 'roles': {}}, set()),
        ({'kind': 'emergence'}, set()),
    ],
)
def test_a_figure_is_asked_for_the_claims_whose_roles_it_gives(options, claims):
    asked = {rule.id for rule in by_kind.asked(options)}
    assert claims <= asked and bool(claims) == bool(asked)
    assert 'uniform_hurts' not in asked
    searches = [float(m) for m in (options.get('roles') or {}).get('headscale', {})]
    assert ('longer_search_serves_end' in asked) == (searches == [4, 5])
