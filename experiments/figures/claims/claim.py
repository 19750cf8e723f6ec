"""Record of a claim under test."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Claim:
    """One claim, whatever figures decide it.

    id: its name in files. short: a few words. printed: the numbers of its source in short, '' where
    there are none. paper: the statement of the source, '' of readings. number: among the first
    paper's eleven claims, None for others. thresholds: ours, by what they are compared with.
    numbers: of the source, where measured ones stand beside them. reading: nothing is to be decided.
    """

    id: str
    short: str
    printed: str
    paper: str
    number: int | None = None
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reading: bool = False
