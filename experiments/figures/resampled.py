"""Claims of one seed, decided again for every resample of what it was measured on.

Records of enough documents, or prompts, hold some measures of every resample of these
(nope.evals.bootstrap). If all records of a figure do, and each is of one seed, its claims are
decided again for every resample. Its numbers get the interval of 95 % of the resamples. A verdict
stands where at least half of them decide and nearly none has the opposite one. The interval says
how much the choice of the text weighs; only seeds say what another training would give.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments.figures.base import FigureInput, FigureOutput, names_below
from experiments.figures.claims.decided import Decided
from experiments.figures.claims.headline import Number
from experiments.figures.claims.intervals import LEVEL
from experiments.figures.claims.verdict import verdict
from nope.records import RESAMPLE, RESAMPLED, Measure, Records

BESIDE = (100 - LEVEL) / 2  # percent on each side of the interval
STATEMENT = (
    'Of one seed, decided again for every resample of its documents or prompts: where more than '
    f'{BESIDE:g} % of them decide the opposite, or fewer than half decide, nothing is decided; '
    'what is the best of several on this text is chosen again in each.'
)

Decide = Callable[[FigureInput], list[Decided]]


def draw(
    drawing: Callable[[FigureInput], FigureOutput],
    decided: Decide | None,
    needs: Mapping[str, str],
    given: FigureInput,
) -> FigureOutput:
    """Figure of one seed as `drawing` makes it, with intervals of its claims where its records have
    resamples.

    decided: the claims of an input, None for a kind that has no such function. needs: what the kind
    requires.
    """
    output = drawing(given)
    names = [name for needed in needs for name in names_below(given, needed)]
    several = any(len(names_below(given, needed)) > 1 for needed in needs)
    # Resamples that every record has; where a group has several seeds these say more.
    count = 0 if several else min((_held(given.records[name]) for name in names), default=0)
    if decided is None or not count:
        return output
    again = []
    for index in range(count):
        records = {name: _one(given.records[name], index) for name in names}
        again.append(decided(dataclasses.replace(given, records={**given.records, **records})))
    found = zip(output.claims, *again, strict=True)
    claims = [_by_resamples(claim, claims_R) for claim, *claims_R in found]
    return dataclasses.replace(output, claims=claims)


def _held(records: Records) -> int:
    sizes = [len(m.values) for m in records.measures.values() if m.axes[:1] == (RESAMPLE,)]
    return min(sizes, default=0)


def _one(records: Records, index: int) -> Records:
    """Records as one resample has them: in place of what was averaged over axes before the last, as
    entropy was over layers and heads, its mean stands at each of them."""
    measures = dict(records.measures)
    for name, measure in records.measures.items():
        if measure.axes[:1] == (RESAMPLE,):
            own = name.removesuffix(RESAMPLED)
            there = measures[own]
            values = np.broadcast_to(measure.values[index], there.values.shape)
            measures[own] = Measure(values, there.axes, there.unit)
    return dataclasses.replace(records, measures=measures)


def _by_resamples(claim: Decided, claims_R: Sequence[Decided]) -> Decided:
    """The claim with what its resamples say. One within the margin of a claim decides nothing and
    speaks against no verdict, but at least half must decide."""
    numbers = tuple(_within(n, [c.numbers for c in claims_R]) for n in claim.numbers)
    opposed = any(c.holds is not None and c.holds is not claim.holds for c in claims_R)
    said = verdict([claim.verdict, *(c.verdict for c in claims_R)], rare=BESIDE / 100)
    if claim.holds is None or not (opposed or numbers != claim.numbers or said != claim.verdict):
        return dataclasses.replace(claim, numbers=numbers)
    statement = f'{claim.statement} {STATEMENT}'
    return dataclasses.replace(claim, numbers=numbers, statement=statement, verdict=said)


def _within(number: Number, numbers_R: Sequence[Sequence[Number]]) -> Number:
    """The number with its interval over the resamples. It gets none where a resample lacks it in
    the same words, as where another length decides. It gets none where all resamples agree: 40 of
    40 keys in each are no certainty. And it gets none if the interval leaves it out, as with the
    longest of several lengths, which chance only shortens."""
    if len(number.by_seed) > 1:
        return number
    values = [
        other.by_seed[0]
        for others in numbers_R
        for other in others
        if (other.what, other.unit) == (number.what, number.unit)
    ]
    known = [value for value in values if value is not None]
    if len(known) < len(numbers_R) or number.by_seed[0] is None:
        return number
    low, high = np.percentile(known, [BESIDE, 100 - BESIDE])
    if not (low < high and low <= number.by_seed[0] <= high):
        return number
    return dataclasses.replace(number, resampled=(float(low), float(high)))
