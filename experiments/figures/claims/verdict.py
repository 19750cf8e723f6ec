"""Verdicts: of one number against a limit, and of several cases together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from experiments.figures.claims.intervals import LEVEL, Interval

HOLDS, FAILS, UNDECIDED = 'holds', 'does not hold', 'undecided'
NOT_MEASURED, READING = 'not measured', 'reading'
VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_MEASURED, READING)
RULE = f'an interval of the mean over seeds (t, {LEVEL} %) that contains the limit decides nothing'
OVER_SEEDS = f'{RULE}, nor does one seed'
ABOVE, BELOW, NEAR = 'above', 'below', 'within'
AT_LEAST, AT_MOST = 'at least', 'at most'


@dataclasses.dataclass(frozen=True)
class Bound:
    """Condition on a number: a side of a limit, with a margin that decides nothing.

    The side is ABOVE, BELOW, AT_LEAST, AT_MOST, or NEAR, which is within `limit` of 0. Limit and
    margin are numbers, or names among the thresholds of the claim.
    """

    side: str
    limit: float | str
    margin: float | str = 0.0

    def resolved(self, thresholds: Mapping[str, float]) -> Bound:
        limit, margin = (
            thresholds[x] if isinstance(x, str) else x for x in (self.limit, self.margin)
        )
        return Bound(self.side, limit, margin)

    @property
    def limits(self) -> tuple[float, ...]:
        limit = float(self.limit)
        return (-limit, limit) if self.side == NEAR else (limit,)

    def holds(self, found: Interval) -> bool | None:
        """None where the interval contains a limit, the mean is within the margin of one, or a
        single seed is to decide nothing."""
        if not self.decided(found):
            return None
        limit = float(self.limit)
        if self.side == NEAR:
            return abs(found.mean) < limit
        if self.side in (AT_LEAST, AT_MOST):
            return found.mean >= limit if self.side == AT_LEAST else found.mean <= limit
        return found.mean > limit if self.side == ABOVE else found.mean < limit

    def decided(self, found: Interval) -> bool:
        margin = float(self.margin)
        clear = not (margin and any(abs(found.mean - x) <= margin for x in self.limits))
        strict = self.side in (ABOVE, BELOW) and len(found.by_seed) > 1
        tie = strict and found.mean == self.limit  # of all seeds alike: an interval of no width
        return found.decides and clear and not (tie or any(map(found.contains, self.limits)))

    def said(self, unit: str) -> str:
        """'below 0.1 nats'."""
        limit = f'{self.limit:g} {unit}'.rstrip()
        return f'within {limit} of 0' if self.side == NEAR else f'{self.side} {limit}'

    def said_margin(self, unit: str) -> str:
        """'a difference of at most 0.01 nats decides nothing, and ', '' without a margin."""
        margin = f'{self.margin:g} {unit}'.rstrip()
        return f'a difference of at most {margin} decides nothing, and ' if self.margin else ''


def every(parts: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False where one does not, else None where one is undecided."""
    found = list(parts)
    return False if False in found else None if None in found else True


def word(holds: bool | None) -> str:
    return UNDECIDED if holds is None else HOLDS if holds else FAILS


def holds(word: str) -> bool | None:
    return {HOLDS: True, FAILS: False}.get(word)


def verdict(
    cases: Sequence[str],
    *,
    open_: bool = False,
    rare: float | None = None,
    opposed: str = UNDECIDED,
) -> str:
    """Verdict of several cases together: seeds, resamples of one seed, or figures.

    By default all must agree; opposite ones give `opposed`. With `open_` the interval of a number
    contains its limit. Resamples pass `rare`, the share of cases that may be opposite to the first
    one, which was measured; at least half of the resamples must decide.
    """
    first, found = cases[0], set(cases)
    if rare is None:
        if NOT_MEASURED in found:
            return NOT_MEASURED
        agreed = first if len(found) == 1 else opposed if {HOLDS, FAILS} <= found else UNDECIDED
    else:
        decided = [case for case in cases[1:] if case in (HOLDS, FAILS)]
        others = sum(case != first for case in decided)
        clear = others <= rare * len(cases) and 2 * len(decided) >= len(cases) - 1
        agreed = first if clear else UNDECIDED
    return UNDECIDED if open_ and agreed in (HOLDS, FAILS) else agreed
