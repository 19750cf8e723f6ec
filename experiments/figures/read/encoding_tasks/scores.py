"""Accuracies of one encoding on one task, for every seed, read from its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.encoding_tasks import curves, released


@dataclasses.dataclass(frozen=True)
class Score(curves.Curve):
    """One encoding on one task.

    - accuracy: [S, n]. inside, beyond: [S], over all examples up to L and beyond.
    - scratchpad: its format, 'none' without one.
    - further: whether tests have another reach than the task's own.
    """

    task: str
    accuracy: np.ndarray
    samples: np.ndarray
    inside: np.ndarray
    beyond: np.ndarray
    scratchpad: str = 'none'
    further: bool = False

    @property
    def comparable(self) -> bool:
        """Whether the second paper's accuracies beyond L are of such examples: without scratchpad,
        and of tests that end where the task's own do."""
        return self.scratchpad == 'none' and not self.further

    @property
    def released(self) -> Mapping[int, float]:
        """Length -> the second paper's accuracy, where its models were trained to the same L, and
        without scratchpad as these."""
        if self.scratchpad != 'none':  # lengths speak for themselves
            return {}
        return released.by_length(self.task, self.paper, self.longest)

    @property
    def released_beyond(self) -> float | None:
        """The second paper's mean accuracy beyond its own L, `released.longest`; None for one that
        it does not give, and with a scratchpad or tests of another reach."""
        found = released.beyond(self.task, self.paper) if self.comparable else None
        return None if found is None else float(found.mean())


def read(given: FigureInput, curve: Mapping[str, Any]) -> Score:
    """The records '<group>/<seed>' of a curve. ValueError where they differ in task or lengths."""
    found = BySeed.of(given, curve['group'])
    for name, r in zip(found.names, found.records, strict=True):
        for side in ('inside', 'beyond'):
            if r.attributes.get(side) is None:
                raise ValueError(f'figure {given.name!r}, run {name!r}: no accuracy {side} L')
    return Score(
        task=found.shared(lambda r: r.attributes['task'], 'task'),
        label=curve['label'],
        paper=curve.get('paper', ''),
        names=found.names,
        seeds=found.seeds,
        longest=found.shared(lambda r: r.attributes['longest'], 'L'),
        lengths=np.array(found.shared(lambda r: r.along('length', 0).tolist(), 'lengths')),
        accuracy=found.stacked('accuracy'),
        samples=np.array(found.records[0]['samples']),
        inside=np.array([r.attributes['inside'] for r in found.records], np.float64),
        beyond=np.array([r.attributes['beyond'] for r in found.records], np.float64),
        further=found.shared(lambda r: r.attributes.get('reach') is not None, 'their reach'),
        # Records of tasks without a scratchpad need not say so.
        scratchpad=found.shared(
            lambda r: str(r.attributes.get('scratchpad', 'none')), 'their scratchpad'
        ),
    )


def read_all(given: FigureInput) -> dict[str, list[Score]]:
    """Task -> scores of the curves of the options. ValueError as `curves.grouped`."""
    every = [read(given, curve) for curve in given.options['curves']]
    return curves.grouped(given, every, lambda score: score.task)
