"""Claim as a figure decides it: an entry of summary.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.figures.claims import headline


@dataclasses.dataclass(frozen=True)
class Claim:
    """One thing the paper says, next to what was measured.

    id, number, paper: as listed in claims/catalogue.py.
    measured: numbers, JSON-able; None stands for 'not within the positions measured'.
    holds: computed from `measured`; None where that decides nothing.
    statement: what `holds` decides, with every threshold it uses.
    verdict: 'holds', 'does not hold', 'undecided' (the numbers are too close or too few), 'not
        measured' (`measured` says what is missing) or 'reading' (there is nothing to decide).
    numbers: those of `measured` that the verdict rests on, in plain words with units.
    """

    id: str
    number: int | None
    paper: str
    measured: Mapping[str, Any] | float
    holds: bool | None
    statement: str
    verdict: str
    numbers: headline.Numbers = ()

    @property
    def headline(self) -> str:
        """`numbers` as one line."""
        return headline.line(self.numbers)

    def stated(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        facts = dataclasses.asdict(self) | {'headline': self.headline}
        return facts | {'numbers': [n.stated() for n in self.numbers]}
