"""The list of claims: complete, each once, each decided somewhere."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures import KINDS
from experiments.figures.claims import by_kind
from experiments.figures.claims.catalogue import CLAIMS, SOURCES
from experiments.figures.claims.decide import Every, Rule, decide
from experiments.figures.claims.headline import number
from experiments.figures.claims.verdict import ABOVE, BELOW, NEAR, Bound
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
    assert set(by_kind.RULES) <= set(KINDS)


def test_statements_say_the_threshold_that_decides():
    for rule in ALL:
        limits = [f'{value:g}' for value in rule.claim.thresholds.values()]
        assert not limits or any(limit in rule.statement for limit in limits), rule.id


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


def test_several_parts_must_all_hold_and_one_that_finds_nothing_is_left_out():
    parts = [
        Every(lambda shown, key=key: shown.get(key, {}), bound, key, each=True)
        for key, bound in (('up', Bound(ABOVE, 0)), ('down', Bound(BELOW, 0)))
    ]
    rule = Rule('parity', 'Both', tuple(parts))
    for shown, verdict in (
        ({'up': {'a': 1}, 'down': {'b': -1}}, 'holds'),
        ({'up': {'a': 1}, 'down': {'b': 1}}, 'does not hold'),
        ({'up': {'a': 1}}, 'holds'),
        ({}, 'not measured'),
    ):
        assert decide([rule], shown)[0].verdict == verdict


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
        ({'kind': 'entropy_loss', 'roles': {'base': 'a', 'rotary': 'b'}}, {'parity', 'onset'}),
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
