"""Record of a claim under test."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Claim:
    """One claim, whatever figures decide it.

    The id is its name in files, `short` a few words. `printed` has the numbers of its source in
    short, and `paper` its words; our own claims have neither. The number counts the first paper's
    eleven claims. The thresholds are ours, by what they are compared with. Measured numbers stand
    beside the source's `numbers`. A reading has nothing to decide.
    """

    id: str
    short: str
    printed: str = ''
    paper: str = ''
    number: int | None = None
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reading: bool = False
