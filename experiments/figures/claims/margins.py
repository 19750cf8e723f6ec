"""Decision of a claim that several differences lie above 0."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims import headline
from experiments.figures.claims.decide import Measured
from experiments.figures.claims.intervals import Interval, every, stated


def all_above(margins: Mapping[str, Interval], margin: float, what: str, unit: str) -> Measured:
    """Whether all differences lie above 0; one within `margin` of it decides nothing."""
    verdicts = {name: interval.above(0, margin) for name, interval in margins.items()}
    numbers = headline.decisive(
        f'least lead in {what}', margins, unit, highest=False, verdicts=verdicts
    )
    return stated(margins), every(verdicts.values()), numbers
