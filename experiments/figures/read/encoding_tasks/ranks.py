"""Ranks of encodings by accuracy beyond the training lengths, and their mean reciprocals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.scores import Score

ALIKE = 0.02  # a difference of accuracies from which one rank above another is no finding


@dataclasses.dataclass(frozen=True)
class Ranks:
    """Reciprocal ranks, [S, Q, E]: of every seed and task among the E encodings, 1 / 1 the best.

    - labels, paper: [E] as of the scores. tasks: [Q].
    - first: equal accuracies are ranked in the paper's order of rows, then in that of the figure.
    - shared: accuracies that differ by at most ALIKE share the mean of their ranks.
    - comparable: whether the second paper's ranks are of such examples.
    """

    labels: tuple[str, ...]
    paper: tuple[str, ...]
    tasks: tuple[str, ...]
    first: np.ndarray
    shared: np.ndarray
    comparable: bool = True

    def of(self, category: str) -> Ranks | None:
        """Ranks on the tasks of a category, or of all; None where there are none."""
        chosen = [
            i for i, t in enumerate(self.tasks) if category in (released.ALL, released.category(t))
        ]
        if not chosen:
            return None
        tasks = tuple(self.tasks[i] for i in chosen)
        return dataclasses.replace(
            self, tasks=tasks, first=self.first[:, chosen], shared=self.shared[:, chosen]
        )

    @property
    def by_seed(self) -> np.ndarray:
        """[S, E] mean over tasks."""
        return self.first.mean(axis=1)

    @property
    def mean(self) -> np.ndarray:
        """[E] mean over tasks and seeds, the paper's number."""
        return self.first.mean(axis=(0, 1))

    @property
    def as_released(self) -> bool:
        """Whether the ranks are among the encodings of the paper, and these alone, and of examples
        like the paper's."""
        return self.comparable and sorted(self.paper) == sorted(released.ENCODINGS)

    @property
    def order(self) -> tuple[str, ...]:
        """[E] labels in the order that decides equal accuracies."""
        return tuple(self.labels[i] for i in _order(self.paper))

    def at(self, paper: str) -> int | None:
        """Index of the encoding by the paper's name; None for one that is not there."""
        return self.paper.index(paper) if paper in self.paper else None


def rank(scores: Mapping[str, Sequence[Score]]) -> Ranks:
    """Ranks of the scores of every task (`scores.by_task`)."""
    some = next(iter(scores.values()))
    labels, paper = tuple(s.label for s in some), tuple(s.paper for s in some)
    beyond_SQE = np.stack([[s.beyond for s in each] for each in scores.values()]).transpose(2, 0, 1)
    order = _order(paper)
    first = np.empty(beyond_SQE.shape)
    shared = np.empty(beyond_SQE.shape)
    for index in np.ndindex(*beyond_SQE.shape[:2]):
        values = beyond_SQE[index]
        # Stable: of equal ones the first in the order of rows stays in front.
        ranked = [order[i] for i in np.argsort(-values[order], kind='stable')]
        first[index][ranked] = 1 / np.arange(1, len(values) + 1)
        shared[index] = reciprocal(values, ALIKE)
    comparable = all(score.comparable for each in scores.values() for score in each)
    return Ranks(labels, paper, tuple(scores), first, shared, comparable)


def reciprocal(values: np.ndarray, alike: float = 0.0) -> np.ndarray:
    """Reciprocal ranks along the first axis, 1 of the greatest; values that differ by at most
    `alike` share the mean of their ranks."""
    apart = values[None] - values[:, None]
    better = (apart > alike + 1e-9).sum(axis=1)
    equal = (np.abs(apart) <= alike + 1e-9).sum(axis=1)
    return 1 / (better + (equal + 1) / 2)


def _order(paper: Sequence[str]) -> list[int]:
    """Indices of the encodings in the order that decides equal accuracies."""
    known = [paper.index(name) for name in released.ENCODINGS if name in paper]
    return known + [i for i in range(len(paper)) if i not in known]
