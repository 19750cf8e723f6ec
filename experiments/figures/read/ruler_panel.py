"""Scores of one model on RULER, and its loss by position, read from records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read import position_curve
from experiments.figures.read.position_curve import PositionCurve


@dataclasses.dataclass(frozen=True)
class RulerPanel:
    """Scores of one model.

    - names: of its records. lengths: [K], ascending, in tokens. score_KQ, average_K: 0 to 100.
    - tokens_K: of prompt and answer as they were built, mean over tasks.
    - passed, of_base: effective lengths in tokens, 0 for none, by RULER's 85.6 and by 85 % of the
      score at the shortest length.
    - loss: by position; None without one up to L.
    """

    label: str
    names: tuple[str, ...]
    tasks: tuple[str, ...]
    lengths: tuple[int, ...]
    score_KQ: np.ndarray
    average_K: np.ndarray
    tokens_K: np.ndarray
    passed: int
    of_base: int
    loss: PositionCurve | None

    @property
    def reads_to(self) -> int | None:
        """The position at which the loss has risen by 0.1 nats; None where it has not within the
        positions measured."""
        assert self.loss is not None
        bend = self.loss.loss_bend()
        return None if bend is None else round(bend * self.loss.train_length)


def read(given: FigureInput, chosen: Mapping[str, Any]) -> RulerPanel:
    """A panel of the options."""
    records = given.records[chosen['record']]
    facts, loss = records.attributes, chosen.get('loss')
    if loss and len(position_curve.positions_of(given.records[loss])) < facts['train_length']:
        loss = None  # a rise beyond L cannot be seen
    return RulerPanel(
        label=chosen['label'],
        names=tuple(name for name in (chosen['record'], loss) if name),
        tasks=tuple(map(str, records.coordinates['task'])),
        lengths=tuple(records.along('length', 0).tolist()),
        score_KQ=records['score'],
        average_K=records['average'],
        tokens_K=records['tokens'].mean(axis=1),
        passed=facts['effective_length'],
        of_base=facts['effective_length_of_base'],
        loss=position_curve.read(loss, given.records[loss]) if loss else None,
    )


def rows(panel: RulerPanel) -> list[dict[str, Any]]:
    """One row a task and length; the mean over tasks as the task 'mean'."""
    tables = zip(panel.tasks, panel.score_KQ.T, strict=True)
    return [
        {
            'record': panel.names[0],
            'label': panel.label,
            'task': task,
            'length': length,
            'tokens': float(panel.tokens_K[k]),
            'score': float(score_K[k]),
        }
        for task, score_K in (*tables, ('mean', panel.average_K))
        for k, length in enumerate(panel.lengths)
    ]
