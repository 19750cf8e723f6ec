"""Axes of bars: ranks of formats on every task, accuracies of formats and encodings on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.scratchpads import formats
from experiments.figures.read.scratchpads.bars import Bars, by_encoding

RELEASED: dict[str, Any] = accuracy_axes.DIAMOND | {'markerfacecolor': 'white'}
INSIDE: dict[str, Any] = {'linewidth': 1.4, 'linestyle': '-'}
REASONED: dict[str, Any] = {
    'marker': 'x',
    'markersize': 5,
    'markeredgecolor': style.BLACK,
    'linestyle': 'none',
}
WIDTH = 0.8  # of a group of bars


def ranks(axes: mpl.Axes, found: Mapping[str, Bars], names: Sequence[str]) -> None:
    """Mean reciprocal rank of every format on each task, seeds as dots. The paper ranks eight
    formats; its rank is a diamond beside as many."""
    for place, (task, bars) in enumerate(found.items()):
        for f, name in enumerate(names):
            index = bars.at(name)
            if index is None:
                continue
            at = _bar(axes, place, f, len(names), bars.reciprocal()[index].mean(axis=0))
            paper = released.UNPADDED_MRR.get(task) if name == formats.NONE else None
            if paper is not None and formats.complete(bars.formats):
                axes.plot(at, paper, **RELEASED)
    _finish_ranks(axes, list(found))


def ranks_by_encoding(
    axes: mpl.Axes, found: Mapping[str, Bars], names: Sequence[str], labels: Sequence[str]
) -> None:
    """Mean reciprocal rank of every format with each encoding, over the tasks that have both, seeds
    as dots (Figure F.8)."""
    for place, label in enumerate(labels):
        for f, name in enumerate(names):
            some = by_encoding(found.values(), label, name)
            if some is not None:
                _bar(axes, place, f, len(names), some)
    tasks = [sum(label in bars.labels for bars in found.values()) for label in labels]
    _finish_ranks(
        axes,
        [
            f'{label} ({n} task{"s" if n > 1 else ""})'
            for label, n in zip(labels, tasks, strict=True)
        ],
    )


def _bar(axes: mpl.Axes, place: int, f: int, count: int, by_seed: np.ndarray) -> float:
    """Draws a bar of the format f of `count`, and its seeds, in a group; returns where."""
    width = WIDTH / count
    at = place + (f - (count - 1) / 2) * width
    axes.bar(at, by_seed.mean(), 0.92 * width, color=format_color(f, count))
    axes.scatter([at] * len(by_seed), by_seed, **accuracy_axes.SEEDS)
    return at


def _finish_ranks(axes: mpl.Axes, groups: Sequence[str]) -> None:
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, 1.05)
    axes.set_ylabel('mean reciprocal rank')
    axes.grid(False, axis='x')


def accuracies(axes: mpl.Axes, bars: Bars, colors: Mapping[str, str]) -> None:
    """Exact match beyond L of every format and encoding, seeds as dots, released ones as diamonds.
    A line is the accuracy inside L, a cross the share of right scratchpads beyond L. colors: by
    label."""
    count = len(bars.labels)
    width = WIDTH / count
    for f, row in enumerate(bars.cells):
        for e, cell in enumerate(row):
            at = f + (e - (count - 1) / 2) * width
            beyond = cell.score.beyond
            axes.bar(at, beyond.mean(), 0.92 * width, color=colors[cell.score.label])
            axes.scatter([at] * len(beyond), beyond, **accuracy_axes.SEEDS)
            ends = [at - 0.4 * width, at + 0.4 * width]
            color = colors[cell.score.label]
            axes.plot(ends, [cell.score.inside.mean()] * 2, color=color, **INSIDE)
            if cell.reasoned is not None:
                axes.plot(at, cell.reasoned.mean(), zorder=4, **REASONED)
            paper = released.with_format(bars.task, cell.score.paper, cell.format)
            if paper is not None:
                axes.plot(at, paper.mean(), **RELEASED)
    axes.set_xticks(range(len(bars.formats)), [formats.words(name) for name in bars.formats])
    axes.set_ylim(-0.03, 1.05)
    axes.set_title(f'{bars.task}, L = {bars.cells[0][0].score.longest}')
    axes.set_ylabel('exact match')
    axes.grid(False, axis='x')


def format_color(index: int, count: int) -> Any:
    """Colours of formats, apart from those of encodings."""
    return mpl.colormaps['viridis'](np.linspace(0.1, 0.9, count))[index]
