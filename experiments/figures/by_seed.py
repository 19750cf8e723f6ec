"""Records of one model made in the same way, one a seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from experiments.figures.base import FigureInput, names_below
from nope.records import Records

T = TypeVar('T')


@dataclasses.dataclass(frozen=True)
class BySeed:
    """The records '<group>/<seed>' of a figure in the order of their names, at least one."""

    figure: str
    group: str
    names: tuple[str, ...]
    records: tuple[Records, ...]

    @classmethod
    def of(cls, given: FigureInput, group: str) -> BySeed:
        names = tuple(names_below(given, f'{group}/'))
        return cls(given.name, group, names, tuple(given.records[name] for name in names))

    @property
    def seeds(self) -> tuple[str, ...]:
        return tuple(name.removeprefix(f'{self.group}/') for name in self.names)

    def shared(self, fact: Callable[[Records], T], what: str) -> T:
        """A fact that all records share. ValueError, naming `what` it is, where they differ."""
        first, *others = [fact(r) for r in self.records]
        for name, other in zip(self.names[1:], others, strict=True):
            if other != first:
                raise ValueError(
                    f'figure {self.figure!r}: the seeds of {self.group!r} differ in {what}: '
                    f'{self.names[0]!r} has {first}, {name!r} has {other}'
                )
        return first

    def stacked(self, measure: str) -> np.ndarray:
        """An array of all records, float64 [S, ...]."""
        return np.stack([r[measure] for r in self.records]).astype(np.float64)
