"""The list of claims: complete, each once, each decided somewhere."""

from __future__ import annotations

import pkgutil

from experiments.figures import claims
from experiments.figures.claims import others
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Rule, decide
from experiments.figures.claims.headline import number
from experiments.figures.claims.listed import Listed
from experiments.figures.roles import Undecided


def rules() -> list[Rule]:
    """Of every module of the package."""
    found = []
    for module in pkgutil.iter_modules(claims.__path__, f'{claims.__name__}.'):
        loaded = vars(pkgutil.resolve_name(module.name)).values()
        found += [r for v in loaded if isinstance(v, tuple) for r in v if isinstance(r, Rule)]
    return found


def test_the_eleven_claims_are_listed_with_the_papers_words():
    assert {claim.number for claim in CLAIMS.values()} == {*range(1, 12), None}
    assert all(claim.paper for claim in CLAIMS.values() if claim.number is not None)
    words = [claim.paper for claim in CLAIMS.values() if claim.paper]
    assert len(set(words)) == len(words)


def test_every_claim_is_decided_somewhere_and_none_that_is_not_listed():
    assert {rule.claim.id for rule in rules()} == set(CLAIMS)
    assert all(CLAIMS[rule.claim.id] is rule.claim for rule in rules())


def test_statements_say_the_threshold_that_decides():
    for rule in rules():
        limits = [f'{value:g}' for value in rule.claim.thresholds.values()]
        assert not limits or any(limit in rule.statement for limit in limits), rule.claim.id


def test_a_claim_that_lacks_something_says_what_and_decides_nothing():
    listed = Listed('a', 7, 'the paper says so')

    def measure(shown: int):
        if shown < 0:
            raise Undecided('there is nothing')
        return {'number': shown}, None if shown == 0 else shown > 1, (number('it is', shown, 'L'),)

    rule = Rule(listed, 'above 1', measure)
    for shown, measured, holds, verdict in (
        (2, {'number': 2}, True, 'holds'),
        (1, {'number': 1}, False, 'does not hold'),
        (0, {'number': 0}, None, 'undecided'),
        (-1, {'missing': 'there is nothing'}, None, 'not measured'),
    ):
        (claim,) = decide([rule], shown)
        assert (claim.id, claim.number, claim.paper) == ('a', 7, 'the paper says so')
        assert (claim.measured, claim.holds, claim.statement) == (measured, holds, 'above 1')
        assert claim.verdict == verdict
        assert claim.headline == ('' if holds is None and shown else f'it is {shown:.2f} L')


def test_readings_never_decide_and_say_so():
    rule = Rule(others.LOWEST, 'the lowest', lambda shown: ({'number': shown}, None, ()))
    assert decide([rule], 1)[0].verdict == 'reading'
