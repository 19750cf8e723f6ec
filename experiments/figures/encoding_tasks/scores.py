"""Accuracies of one encoding on one task, for every seed, read from its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import FigureInput, names_below
from experiments.figures.encoding_tasks import curves, released


@dataclasses.dataclass(frozen=True)
class Score:
    """One encoding on one task.

    paper: the second paper's name of the encoding, '' where it has none. names: the records, one a
    seed. longest: L, the greatest length of training. lengths: [n]. accuracy: [S, n]. inside,
    beyond: [S] accuracies over all examples up to L and beyond.
    """

    task: str
    label: str
    paper: str
    names: tuple[str, ...]
    seeds: tuple[str, ...]
    longest: int
    lengths: np.ndarray
    accuracy: np.ndarray
    samples: np.ndarray
    inside: np.ndarray
    beyond: np.ndarray

    @property
    def released(self) -> Mapping[int, float]:
        """Length -> the second paper's accuracy, where its models were trained to the same L."""
        return released.by_length(self.task, self.paper, self.longest)


def read(given: FigureInput, curve: Mapping[str, Any]) -> Score:
    """The records '<group>/<seed>' of a curve. ValueError where they differ in task or lengths."""
    prefix = f'{curve["group"]}/'
    names = names_below(given, prefix)
    records = [given.records[name] for name in names]
    facts = [
        (r.attributes['task'], r.attributes['longest'], tuple(r.along('length', 0).tolist()))
        for r in records
    ]
    if len(set(facts)) != 1:
        raise ValueError(
            f'figure {given.name!r}: the seeds of {curve["group"]!r} differ in task or lengths: '
            f'{sorted(set(facts))}'
        )
    for name, r in zip(names, records, strict=True):
        for side in ('inside', 'beyond'):
            if r.attributes.get(side) is None:
                raise ValueError(f'figure {given.name!r}, run {name!r}: no accuracy {side} L')
    task, longest, lengths = facts[0]
    return Score(
        task=task,
        label=curve['label'],
        paper=curve.get('paper', ''),
        names=tuple(names),
        seeds=tuple(name.removeprefix(prefix) for name in names),
        longest=longest,
        lengths=np.array(lengths),
        accuracy=np.stack([r['accuracy'] for r in records]),
        samples=np.array(records[0]['samples']),
        inside=np.array([r.attributes['inside'] for r in records], np.float64),
        beyond=np.array([r.attributes['beyond'] for r in records], np.float64),
    )


def by_task(given: FigureInput, scores: Sequence[Score]) -> dict[str, list[Score]]:
    """Task -> its scores. ValueError as `curves.grouped`."""
    return curves.grouped(given, scores, lambda score: score.task)
