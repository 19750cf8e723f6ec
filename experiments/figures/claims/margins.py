"""Decision of a claim about several numbers, all of which must bear it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from experiments.figures.claims.decide import Measured
from experiments.figures.claims.headline import Numbers, decisive
from experiments.figures.claims.intervals import Interval, every, stated


def all_decide(
    what: str,
    found: Mapping[str, Interval],
    unit: str,
    verdict: Callable[[Interval], bool | None],
    *,
    highest: bool,
) -> tuple[bool | None, Numbers]:
    """Whether all numbers bear a claim out, and the one that decides it, told by its name. verdict:
    what one of them decides. highest: whether the highest is the hardest to bear out."""
    verdicts = {name: verdict(interval) for name, interval in found.items()}
    numbers = decisive(what, found, unit, highest=highest, verdicts=verdicts)
    return every(verdicts.values()), numbers


def every_above(
    name: str, what: str, found: Mapping[str, Interval], limit: float, margin: float = 0.0
) -> Measured:
    """Whether all numbers, in nats, lie above a limit; one within `margin` of it decides nothing.
    name: of the numbers in summary.json. what: the lowest, in words."""
    holds, numbers = all_decide(
        what, found, 'nats', lambda one: one.above(limit, margin), highest=False
    )
    return {name: stated(found)}, holds, numbers


def every_below(
    name: str, what: str, found: Mapping[str, Interval], limit: float, margin: float = 0.0
) -> Measured:
    """As `every_above`, on the other side. what: the highest, in words."""
    holds, numbers = all_decide(
        what, found, 'nats', lambda one: one.below(limit, margin), highest=True
    )
    return {name: stated(found)}, holds, numbers


def all_above(margins: Mapping[str, Interval], margin: float, what: str, unit: str) -> Measured:
    """Whether all differences lie above 0; one within `margin` of it decides nothing."""
    decided, numbers = all_decide(
        f'least lead in {what}', margins, unit, lambda lead: lead.above(0, margin), highest=False
    )
    return stated(margins), decided, numbers
