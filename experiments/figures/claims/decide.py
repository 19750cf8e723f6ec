"""Decision of claims: rules, the numbers that they compare, and entries of summary.json.

Most rules are one sentence: every number of some kind lies on one side of a limit. `Every` is that
sentence as a value. A rule that says more is a function.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from experiments.figures.claims import verdict
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.claim import Claim
from experiments.figures.claims.decided import Decided
from experiments.figures.claims.headline import Numbers, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import ABOVE, AT_LEAST, NEAR, Bound
from experiments.figures.roles import Undecided

T = TypeVar('T')

# What was measured, whether the claim holds, and the numbers that this rests on.
Measured = tuple[Mapping[str, Any], bool | None, Numbers]
Found = Mapping[str, float | np.ndarray | Interval]


@dataclasses.dataclass(frozen=True)
class Every(Generic[T]):
    """Numbers that must all lie on one side of a limit.

    `find` takes what the figure shows. It gives numbers by seed, each by its name, '' for a
    single one. `what` is the number in words, before its name. Where it is empty, `name` stands for
    all of them. With `several` one seed decides nothing. With `each` all numbers are told, not
    only the one that decides. With `alone` the figure is drawn for each seed, and the mean over
    seeds is held against the limit as well. The words of `notes` stand behind a number.
    """

    find: Callable[[T], Found]
    bound: Bound
    what: str
    unit: str = 'nats'
    name: str = ''
    several: bool = False
    each: bool = False
    alone: bool = False
    notes: Callable[[T], Mapping[str, str]] | None = None

    def __call__(self, shown: T) -> Measured:
        """Measured numbers, their verdict and those to be told."""
        found = {
            name: x
            if isinstance(x, Interval)
            else Interval.of(np.atleast_1d(x), self.several, self._called(name))
            for name, x in self.find(shown).items()
        }
        if not found:
            raise Undecided(f'nothing was measured for: {self._called() or "any number"}')
        holds = {name: self.bound.holds(interval) for name, interval in found.items()}
        limits = self.bound.limits if self.alone else ()
        notes = self.notes(shown) if self.notes else {}
        numbers = []
        for name in found if self.each else [self._hardest(found, holds)]:
            told = number(self._called(name), found[name], self.unit, limits)
            numbers.append(dataclasses.replace(told, note=notes.get(name, '')))
        stated: dict[str, Any] = {name: interval.stated() for name, interval in found.items()}
        stated = stated.get('', stated)
        measured = {name: stated} if (name := self.what or self.name) else stated
        return measured, verdict.every(holds.values()), tuple(numbers)

    def _called(self, name: str = '') -> str:
        return ', '.join(filter(None, (self.what, name))) or self.name

    def _hardest(self, found: Mapping[str, Interval], holds: Mapping[str, bool | None]) -> str:
        """Name of the number that decides. It fails where one does, else it is undecided where one
        is. Its mean is furthest on the wrong side."""
        every = verdict.every(holds.values())
        sign = -1 if self.bound.side in (ABOVE, AT_LEAST) else 1

        def beyond(name: str) -> float:
            mean = found[name].mean
            return abs(mean) if self.bound.side == NEAR else sign * mean

        return max((name for name in found if holds[name] is every), key=beyond)


Measure = Callable[[T], Measured]


@dataclasses.dataclass(frozen=True)
class Rule(Generic[T]):
    """Decision of a claim by a figure.

    The subject says what is decided; the words of the limits follow it. The measure is numbers
    with their limits, all of which must hold, or a function. A function raises Undecided where
    something is missing, and its subject says all. Of several parts those that were measured can
    refute the claim; while one lacks it is not borne out. A config that is to decide the claim
    gives the roles in `needs` and those that a value such as `Less` names, or roles that pass its
    test. A function's own limit is `bound`, in its unit.
    """

    id: str
    subject: str
    measure: Every[T] | tuple[Every[T], ...] | Measure[T]
    needs: tuple[str, ...] | Callable[[Mapping[str, Any]], bool] = ()
    bound: Bound | None = None
    unit: str = ''

    @property
    def claim(self) -> Claim:
        return CLAIMS[self.id]

    @functools.cached_property  # claims are decided anew for every resample
    def parts(self) -> tuple[Every[T], ...]:
        """The numbers that are compared, with the thresholds of the claim; () of a function."""
        given = self.measure if isinstance(self.measure, tuple) else (self.measure,)
        return tuple(
            dataclasses.replace(part, bound=part.bound.resolved(self.claim.thresholds))
            for part in given
            if isinstance(part, Every)
        )

    @functools.cached_property
    def statement(self) -> str:
        """The rule in words, with every threshold."""
        parts = self.parts
        if not parts:
            return self.subject
        sides = [
            f'{part.what or part.name} {part.bound.said(part.unit)}' if len(parts) > 1
            else part.bound.said(part.unit) for part in parts
        ]  # fmt: skip
        margins = dict.fromkeys(part.bound.said_margin(part.unit) for part in parts)
        tail = verdict.OVER_SEEDS if parts[0].several else verdict.RULE
        return f'{self.subject}: {" and ".join(sides)}; {"".join(margins)}{tail}.'

    @property
    def limit(self) -> str:
        """The limits in short."""
        compared = (self,) if self.bound else self.parts
        return '; '.join(x.bound.said(x.unit) for x in compared if x.bound)

    def asks(self, roles: Mapping[str, Any]) -> bool:
        """Whether a figure with these roles is to decide the claim."""
        if callable(self.needs):
            return self.needs(roles)
        own = [role for part in self.parts for role in getattr(part.find, 'roles', ())]
        return all(roles.get(role) for role in (*self.needs, *own))

    def measured(self, shown: T) -> Measured:
        """By all parts. Undecided where something is missing and the rest does not refute."""
        if not self.parts:
            assert not isinstance(self.measure, tuple)
            return self.measure(shown)
        measured: dict[str, Any] = {}
        found, lacking = [], []
        for part in self.parts:
            try:
                found.append(part(shown))
            except Undecided as reason:
                lacking.append(str(reason))
        for some, _, _ in found:
            for name, values in some.items():
                measured[name] = {**measured.get(name, {}), **values}
        holds = verdict.every(holds for _, holds, _ in found)
        numbers = tuple(n for _, _, numbers in found for n in numbers)
        return beside(lacking, measured, holds), holds, numbers


def beside(
    lacking: Sequence[str], measured: Mapping[str, Any], holds: bool | None
) -> Mapping[str, Any]:
    """Measured values, with what lacks. Undecided where something does, unless the rest refutes
    the claim."""
    if not lacking:
        return measured
    missing = '; '.join(dict.fromkeys(lacking))
    if holds is not False:
        raise Undecided(missing)
    return {**measured, 'lacking': missing}


def decide(rules: Sequence[Rule[T]], shown: T) -> list[Decided]:
    """One decided claim for each rule, in their order; undecided ones say what is missing."""
    found = []
    for rule in rules:
        claim = rule.claim
        numbers: Numbers = ()
        measured: Mapping[str, Any] = {}
        try:
            measured, holds, numbers = rule.measured(shown)
            said = verdict.READING if claim.reading else verdict.word(holds)
        except Undecided as reason:
            measured, said = {'missing': str(reason)}, verdict.NOT_MEASURED
        said = verdict.verdict([said], open_=any(n.open for n in numbers))
        facts = (claim.id, claim.number, claim.paper, measured)
        found.append(Decided(*facts, rule.statement, said, numbers))
    return found
