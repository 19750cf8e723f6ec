"""A claim as a figure decided it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from experiments.figures.claims import headline, verdict


@dataclasses.dataclass(frozen=True)
class Decided:
    """A claim of a source, next to what was measured.

    The catalogue has id, number and paper. `measured` is JSON-able, with None for 'not within the
    positions measured'. The statement says what is decided, with every threshold. The verdict
    'undecided' means that the numbers are too close or too few, 'not measured' that `measured` says
    what is missing, 'reading' that nothing is to be decided. The verdict rests on `numbers`, in
    plain words with units.
    """

    id: str
    number: int | None
    paper: str
    measured: Mapping[str, Any] | float
    statement: str
    verdict: str
    numbers: headline.Numbers = ()

    @property
    def holds(self) -> bool | None:
        """None where nothing is decided."""
        return verdict.holds(self.verdict)

    @property
    def headline(self) -> str:
        """`numbers` as one line."""
        return headline.line(self.numbers)

    def stated(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        facts = dataclasses.asdict(self) | {'holds': self.holds, 'headline': self.headline}
        return facts | {'numbers': [n.stated() for n in self.numbers]}
