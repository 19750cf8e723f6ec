"""Decision of a claim: a listed claim and measured values to an entry of summary.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from experiments.figures.claims.decided import Decided as Claim
from experiments.figures.claims.headline import Numbers
from experiments.figures.claims.listed import Listed
from experiments.figures.roles import Undecided

T = TypeVar('T')

# What was measured, whether the claim holds, and the numbers that this rests on.
Measured = tuple[Mapping[str, Any], bool | None, Numbers]


@dataclasses.dataclass(frozen=True)
class Rule(Generic[T]):
    """Decision of a claim by a figure. statement: what is decided, with every threshold; where an
    interval over seeds contains a limit of a number, nothing is.
    measure: from what the figure shows to what was measured, whether the claim holds, None where
    that is not decided, and the numbers of its headline; it raises Undecided where something is
    missing."""

    claim: Listed
    statement: str
    measure: Callable[[T], Measured]


def decide(rules: Sequence[Rule[T]], shown: T) -> list[Claim]:
    """One claim for each rule, in their order; undecided ones say what is missing."""
    return [_decided(rule, shown) for rule in rules]


def _decided(rule: Rule[T], shown: T) -> Claim:
    measured: Mapping[str, Any]
    try:
        measured, holds, numbers = rule.measure(shown)
    except Undecided as reason:
        measured, holds, numbers = {'missing': str(reason)}, None, ()
    listed = rule.claim
    if any(n.open for n in numbers):
        holds = None
    verdict = _verdict(listed, measured, holds)
    said = (listed.id, listed.number, listed.paper, measured, holds, rule.statement, verdict)
    return Claim(*said, numbers)


def _verdict(listed: Listed, measured: Mapping[str, Any], holds: bool | None) -> str:
    if holds is not None:
        return 'holds' if holds else 'does not hold'
    if 'missing' in measured:
        return 'not measured'
    return 'reading' if listed.reading else 'undecided'
