"""Axes of exact match by length on one task, a curve an encoding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from experiments.figures.look import length_axes, mpl, style
from experiments.figures.read.encoding_tasks.scores import Score

RELEASED: dict[str, Any] = {'linestyle': (0, (1.5, 1.5)), 'linewidth': 1.0}
SEEDS: dict[str, Any] = {
    's': 8,
    'color': 'white',
    'edgecolors': style.BLACK,
    'linewidths': 0.5,
    'zorder': 3,
}
DIAMOND: dict[str, Any] = {
    'marker': 'D',
    'markersize': 5,
    'markerfacecolor': 'none',
    'markeredgecolor': style.BLACK,
    'linestyle': 'none',
}  # the paper's
TRAINED = '#EDEDED'  # lengths of training


def draw(axes: mpl.Axes, task: str, some: Sequence[Score]) -> None:
    """Mean over seeds, and a band from the lowest to the highest. Released means of models of the
    same training length are dotted; the lengths of training are shaded."""
    first = some[0]
    axes.axvspan(first.lengths[0] - 0.5, first.longest + 0.5, color=TRAINED, zorder=0)
    colors = style.colors_of(score.label for score in some)
    for score, marker in zip(some, itertools.cycle(length_axes.MARKERS), strict=False):
        mean, color = score.accuracy.mean(axis=0), colors[score.label]
        axes.plot(score.lengths, mean, color=color, marker=marker, markersize=3, linewidth=1.2)
        if len(score.seeds) > 1:
            low, high = score.accuracy.min(axis=0), score.accuracy.max(axis=0)
            axes.fill_between(score.lengths, low, high, color=color, alpha=0.15, linewidth=0)
        if score.released:
            lengths, paper = zip(*score.released.items(), strict=True)
            axes.plot(lengths, paper, color=color, **RELEASED)
    axes.set_xlim(first.lengths[0] - 0.5, first.lengths[-1] + 0.5)
    step = max(1, round(first.lengths[-1] / 4))
    axes.xaxis.set_major_locator(mpl.FixedLocator(range(step, first.lengths[-1] + 1, step)))
    axes.set_ylim(-0.03, 1.03)
    axes.set_title(task)
    axes.set_xlabel('length')
    axes.set_ylabel('exact match')


def handles(some: Sequence[Score]) -> list[Any]:
    """For the legend: a line for each curve of `draw`, the spread of seeds, lengths of training."""
    colors = style.colors_of(score.label for score in some)
    found: list[Any] = [
        mpl.Line2D([], [], color=colors[s.label], marker=marker, markersize=3, label=s.label)
        for s, marker in zip(some, itertools.cycle(length_axes.MARKERS), strict=False)
    ]
    if len(some[0].seeds) > 1:
        found += length_axes.band_handle(len(some[0].seeds))
    return [*found, mpl.Patch(color=TRAINED, label='lengths of training')]
