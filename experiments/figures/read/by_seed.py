"""Records of one model made in the same way, one a seed, and means of each seed's records."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from experiments.figures.given import FigureInput, names_below
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
    def name(self) -> str:
        return self.group

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


def of_models(values_R: np.ndarray, records: Sequence[Records]) -> np.ndarray:
    """Means [S, ...] of values [R, ...], one a record: of each seed over the records that have it,
    seeds in their order. Runs of one model are alike, so that seeds alone are what an interval is
    taken over."""
    seeds = [records_of.attributes['seed'] for records_of in records]
    return np.stack(
        [
            np.mean([v for v, own in zip(values_R, seeds, strict=True) if own == seed], axis=0)
            for seed in dict.fromkeys(seeds)
        ]
    )


class HasSeeds(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def seeds(self) -> tuple[str, ...]: ...


def check_seeds(given: FigureInput, groups: Sequence[HasSeeds]) -> None:
    """ValueError unless all groups have the same seeds."""
    first = groups[0]
    for g in groups[1:]:
        if g.seeds != first.seeds:
            raise ValueError(
                f'figure {given.name!r}: {g.name!r} has the seeds {list(g.seeds)}, '
                f'{first.name!r} has {list(first.seeds)}'
            )


def index_of(multiple: float, multiples: np.ndarray) -> int | None:
    """Index of a length in L among those that were measured, None where it was not."""
    found = np.flatnonzero(np.isclose(multiples, multiple))
    return int(found[0]) if found.size else None
