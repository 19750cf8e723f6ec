"""Encodings that are given no positions against those that are, pair by pair on every task."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.scores import Score


@dataclasses.dataclass(frozen=True)
class Pair:
    """Accuracies beyond L of two encodings, over tasks: NoPE, say, against ALiBi.

    without, told: labels. without_paper, told_paper: the second paper's names, '' of one that it
    has not. tasks: [Q]. seeds: [S]. accuracies: [Q, S, 2], of the one without positions first.
    names: the records, [Q][S] pairs.
    """

    without: str
    told: str
    without_paper: str
    told_paper: str
    comparable: bool
    tasks: tuple[str, ...]
    seeds: tuple[str, ...]
    accuracies: np.ndarray
    names: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def leads(self) -> np.ndarray:
        """[Q, S] by how much the one without positions is ahead."""
        return self.accuracies[..., 0] - self.accuracies[..., 1]

    def released(self, task: str) -> tuple[float, float] | None:
        """Released means over seeds of both on a task; None where the paper lacks one, or they are
        not comparable."""
        if not self.comparable:
            return None
        found = [released.beyond(task, name) for name in (self.without_paper, self.told_paper)]
        return None if any(x is None for x in found) else tuple(float(x.mean()) for x in found)  # type: ignore[union-attr, return-value]


def pairs(found: Mapping[str, Sequence[Score]], without: Collection[str]) -> list[Pair]:
    """Every encoding whose label is in `without` against every other one, in their order."""
    labels = [score.label for score in next(iter(found.values()))]
    told = [e for e, label in enumerate(labels) if label not in without]
    return [
        _pair(found, labels.index(first), second)
        for first in dict.fromkeys(without)
        for second in told
    ]


def _pair(found: Mapping[str, Sequence[Score]], first: int, second: int) -> Pair:
    some = [(scores[first], scores[second]) for scores in found.values()]
    one, other = some[0]
    return Pair(
        without=one.label,
        told=other.label,
        without_paper=one.paper,
        told_paper=other.paper,
        comparable=all(score.comparable for both in some for score in both),
        tasks=tuple(found),
        seeds=one.seeds,
        accuracies=np.stack([np.stack([a.beyond, b.beyond], axis=-1) for a, b in some]),
        names=tuple(tuple(zip(a.names, b.names, strict=True)) for a, b in some),
    )
