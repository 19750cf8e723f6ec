"""Numbers of a figure of scratchpads: rows for its CSV, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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
    return '\n'.join([*(_table(bars) for bars in found.values()), _by_encoding(found)])


def _by_encoding(found: Mapping[str, Bars]) -> str:
    labels, names = all_labels(found.values()), all_formats(found.values())
    lines = [
        'Mean reciprocal rank of the formats by encoding, over the tasks that have both:\n\n',
        _line(['', *labels]),
        _line(['---'] * (1 + len(labels))),
    ]
    for name in names:
        some = [_mean(by_encoding(found.values(), label, name)) for label in labels]
        lines.append(
            _line([formats.words(name), *('-' if x is None else f'{x:.2f}' for x in some)])
        )
    return ''.join(lines)


def _table(bars: Bars) -> str:
    lines = [
        f'{bars.task}, L = {bars.cells[0][0].score.longest}: mean reciprocal rank; accuracy beyond '
        'L of each seed (inside L; scratchpads right beyond L; released):\n\n',
        _line(['', 'rank', *bars.labels]),
        _line(['---'] * (2 + len(bars.labels))),
    ]
    for f, name in enumerate(bars.formats):
        rank = f'{bars.reciprocal()[f].mean():.2f}'
        cells = [_said(cell, bars.task, name) for cell in bars.cells[f]]
        lines.append(_line([formats.words(name), rank, *cells]))
    return ''.join(lines)


def _said(cell: FormatScore, task: str, name: str) -> str:
    ours = ' / '.join(f'{x:.3f}' for x in cell.score.beyond)
    reasoned = '-' if cell.reasoned is None else f'{cell.reasoned.mean():.2f}'
    theirs = _mean(released.with_format(task, cell.score.paper, name))
    known = '-' if theirs is None else f'{theirs:.2f}'
    return f'{ours} ({cell.score.inside.mean():.2f}; {reasoned}; {known})'


def _mean(values: np.ndarray | None) -> float | None:
    return None if values is None else float(values.mean())


def _line(cells: list[str]) -> str:
    return f'| {" | ".join(cells)} |\n'
