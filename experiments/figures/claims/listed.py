"""Form of a claim in the catalogue."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Listed:
    """thresholds: of ours, by what they are compared with. numbers: the paper's, where measured
    ones are put next to them or chosen by them. reading: whether there is nothing to decide."""

    id: str
    number: int | None
    paper: str
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    numbers: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reading: bool = False
