"""Accuracies of every format of scratchpad and encoding on one task (arXiv 2305.19466)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.encoding_tasks import curves, ranks, scores
from experiments.figures.read.encoding_tasks.scores import Score

NONE, FULL = 'none', 'full'

# Format as records name it -> words.
WORDS: Mapping[str, str] = {
    NONE: 'no scratchpad',
    FULL: 'full',
    'no_input': 'no input',
    'no_computation': 'no computation',
    'no_output': 'no output',
    'no_variables': 'no variables',
    'no_remaining': 'no remaining input',
    'minimal': 'minimal',
}


@dataclasses.dataclass(frozen=True)
class FormatScore:
    """One format and encoding on one task. parsed, reasoned: [S] shares of the examples beyond L
    whose scratchpad parses and is right in every step; None without a scratchpad."""

    score: Score
    format: str
    parsed: np.ndarray | None
    reasoned: np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Bars:
    """One task: cells [F][E] of its formats and of the encodings, which are the same for each."""

    task: str
    formats: tuple[str, ...]
    cells: tuple[tuple[FormatScore, ...], ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """[E] labels of the encodings."""
        return tuple(cell.score.label for cell in self.cells[0])

    @property
    def paper(self) -> tuple[str, ...]:
        """[E] the second paper's names of the encodings, '' of one that it has not."""
        return tuple(cell.score.paper for cell in self.cells[0])

    @property
    def seeds(self) -> tuple[str, ...]:
        return self.cells[0][0].score.seeds

    @property
    def beyond(self) -> np.ndarray:
        """[F, E, S] accuracies over all examples beyond L."""
        return np.array([[cell.score.beyond for cell in row] for row in self.cells])

    @property
    def inside(self) -> np.ndarray:
        """[F, E, S] accuracies over all examples up to L."""
        return np.array([[cell.score.inside for cell in row] for row in self.cells])

    def reciprocal(self, alike: float = 0.0) -> np.ndarray:
        """[F, E, S] reciprocal ranks of the formats by `beyond`, of every encoding and seed, 1 the
        best. Accuracies that differ by at most `alike` share the mean of their ranks."""
        return ranks.reciprocal(self.beyond, alike)

    def at(self, name: str) -> int | None:
        """Index of a format; None where it was not measured."""
        return self.formats.index(name) if name in self.formats else None

    def encoding(self, paper: str) -> int | None:
        """Index of the encoding by the paper's name; None for one that is not there."""
        return self.paper.index(paper) if paper in self.paper else None


def ordered(formats: Mapping[str, object]) -> list[str]:
    """Formats in the order of WORDS, then those of ours as they come."""
    known = [name for name in WORDS if name in formats]
    return known + [name for name in formats if name not in WORDS]


def complete(names: Iterable[str]) -> bool:
    """Whether all formats of the paper are there; tasks without intermediate variables have one
    less."""
    return set(WORDS) - set(names) <= {'no_variables'}


def words(name: str) -> str:
    return WORDS.get(name, name)


def all_formats(found: Iterable[Bars]) -> list[str]:
    """Formats of all tasks, in the order of figures."""
    return ordered(dict.fromkeys(name for bars in found for name in bars.formats))


def all_labels(found: Iterable[Bars]) -> list[str]:
    """Labels of the encodings of all tasks, in the order of the task that has the most."""
    most_first = sorted(found, key=lambda bars: -len(bars.labels))
    return list(dict.fromkeys(label for bars in most_first for label in bars.labels))


def by_encoding(found: Iterable[Bars], label: str, name: str) -> np.ndarray | None:
    """[S] reciprocal ranks of the format `name` with one encoding, averaged over tasks with both;
    None without such a task."""
    ranks: dict[str, list[float]] = {}
    for bars in found:
        index = bars.at(name)
        if index is None or label not in bars.labels:
            continue
        for seed, rank in zip(
            bars.seeds, bars.reciprocal()[index, bars.labels.index(label)], strict=True
        ):
            ranks.setdefault(seed, []).append(float(rank))
    return np.array([np.mean(each) for each in ranks.values()]) if ranks else None


def read(given: FigureInput) -> dict[str, Bars]:
    """Task -> its bars, in the order of the curves. ValueError where a task has a format and an
    encoding twice, or formats of one task differ in encodings, seeds or lengths."""
    found: dict[str, dict[str, list[FormatScore]]] = {}
    for curve in given.options['curves']:
        cell = _cell(given, curve)
        found.setdefault(cell.score.task, {}).setdefault(cell.format, []).append(cell)
    return {task: _bars(given, task, some) for task, some in found.items()}


def _bars(given: FigureInput, task: str, found: Mapping[str, Sequence[FormatScore]]) -> Bars:
    names = ordered(found)
    first = found[names[0]]
    curves.check_alike(
        given.name,
        {f'{task}, {n}': [(c.score.label, c.score.paper) for c in found[n]] for n in names},
    )
    for name in names:
        for cell in found[name]:
            _check_alike(given, cell, first[0])
    return Bars(task, tuple(names), tuple(tuple(found[name]) for name in names))


def _check_alike(given: FigureInput, cell: FormatScore, first: FormatScore) -> None:
    for what in ('seeds', 'longest', 'lengths'):
        found, wanted = getattr(cell.score, what), getattr(first.score, what)
        if not np.array_equal(found, wanted):
            raise ValueError(
                f'figure {given.name!r}: {cell.score.label!r} on {first.score.task!r} with the '
                f'format {cell.format!r} has the {what} {found}; {first.score.label!r} with '
                f'{first.format!r} has {wanted}'
            )


def _cell(given: FigureInput, curve: Mapping[str, Any]) -> FormatScore:
    score, found = scores.read(given, curve), BySeed.of(given, curve['group'])
    name = score.scratchpad
    if name == NONE:
        return FormatScore(score, name, None, None)
    weights = np.where(score.lengths > score.longest, score.samples, 0)
    parsed, reasoned = (
        found.stacked(what) @ weights / weights.sum() for what in ('parsed', 'reasoned')
    )
    return FormatScore(score, name, parsed, reasoned)
