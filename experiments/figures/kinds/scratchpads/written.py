"""Numbers of a figure of scratchpads: rows for its CSV, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.look.web import table_of
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.scratchpads import formats
from experiments.figures.read.scratchpads.bars import (
    Bars,
    FormatScore,
    all_formats,
    all_labels,
    by_encoding,
)


def rows(found: Mapping[str, Bars]) -> list[dict[str, Any]]:
    """One row a record: accuracies, what its scratchpads were like beyond L, its rank."""
    return [
        {
            'task': task,
            'format': name,
            'label': cell.score.label,
            'seed': seed,
            'longest': cell.score.longest,
            'accuracy_inside': float(cell.score.inside[s]),
            'accuracy_beyond': float(cell.score.beyond[s]),
            'parsed_beyond': None if cell.parsed is None else float(cell.parsed[s]),
            'reasoned_beyond': None if cell.reasoned is None else float(cell.reasoned[s]),
            'reciprocal_rank': float(bars.reciprocal()[f, e, s]),
            'released_beyond': _mean(released.with_format(task, cell.score.paper, name)),
            'record': cell.score.names[s],
        }
        for task, bars in found.items()
        for f, name in enumerate(bars.formats)
        for e, cell in enumerate(bars.cells[f])
        for s, seed in enumerate(bars.seeds)
    ]


def markdown(found: Mapping[str, Bars]) -> str:
    """Of every task: mean reciprocal rank of the formats, and accuracies beyond L of each seed;
    then the ranks by encoding."""
    parts = []
    for bars in found.values():
        rows = [
            [
                formats.words(name),
                f'{bars.reciprocal()[f].mean():.2f}',
                *(_said(cell, bars.task, name) for cell in bars.cells[f]),
            ]
            for f, name in enumerate(bars.formats)
        ]
        parts.append(
            f'{bars.task}, L = {bars.cells[0][0].score.longest}: mean reciprocal rank; accuracy '
            'beyond L of each seed (inside L; scratchpads right beyond L; released):\n\n'
            + table_of(['', 'rank', *bars.labels], rows)
        )
    labels, by_format = all_labels(found.values()), []
    for name in all_formats(found.values()):
        means = [_mean(by_encoding(found.values(), label, name)) for label in labels]
        by_format.append([formats.words(name), *('-' if x is None else f'{x:.2f}' for x in means)])
    title = 'Mean reciprocal rank of the formats by encoding, over the tasks that have both:\n\n'
    return '\n'.join([*parts, title + table_of(['', *labels], by_format)])


def _said(cell: FormatScore, task: str, name: str) -> str:
    ours = ' / '.join(f'{x:.3f}' for x in cell.score.beyond)
    reasoned = '-' if cell.reasoned is None else f'{cell.reasoned.mean():.2f}'
    theirs = _mean(released.with_format(task, cell.score.paper, name))
    known = '-' if theirs is None else f'{theirs:.2f}'
    return f'{ours} ({cell.score.inside.mean():.2f}; {reasoned}; {known})'


def _mean(values: np.ndarray | None) -> float | None:
    return None if values is None else float(values.mean())
