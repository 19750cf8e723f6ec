"""Scores of one model, as one row of a table."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from experiments.figures.read.tables.options import Options
from experiments.figures.read.tables.table import Column
from experiments.figures.roles import Undecided

AVERAGE = Column('avg', 'avg')


@dataclasses.dataclass(frozen=True)
class ScoreRow:
    """Scores of one model; tasks that a record lacks are left out.

    - option: the entry of the config. samples: task -> how many were scored.
    - scores: task -> [S], one a seed, percent.
    """

    option: Options
    names: tuple[str, ...]
    scores: Mapping[str, np.ndarray]
    samples: Mapping[str, int]

    @property
    def error(self) -> float:
        """Standard error of the mean over the tasks, points: of shares of independent questions,
        in one seed. Shares of right answers alone have it."""
        tasks = [task for task in self.scores if task != AVERAGE.key]
        shares = np.array([self.scores[task].mean() for task in tasks])
        counts = np.array([self.samples[task] for task in tasks])
        return float(np.sqrt((shares * (100 - shares) / counts).sum()) / len(tasks))

    def mean(self, task: str) -> float:
        """Over seeds; Undecided where it was not measured."""
        if task not in self.scores:
            raise Undecided(f'{self.option["label"]!r} has no score of {task!r}')
        return float(self.scores[task].mean())
