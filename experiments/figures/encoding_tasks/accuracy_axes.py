"""Axes of exact match by length on one task, a curve an encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures import mpl, style
from experiments.figures.encoding_tasks.scores import Score

RELEASED: dict[str, Any] = {'linestyle': (0, (1.5, 1.5)), 'linewidth': 1.0}


_COLORS = (*style.COLORS, style.GREY)


def color(index: int) -> str:
    """Of an encoding by its place in the figure, eight of them apart."""
    return _COLORS[index % len(_COLORS)]


def draw(axes: mpl.Axes, task: str, some: Sequence[Score]) -> None:
    """Mean over seeds with one standard deviation; the released mean, where its models were trained
    to the same length, as a dotted line; the lengths of training shaded."""
    first = some[0]
    axes.axvspan(first.lengths[0] - 0.5, first.longest + 0.5, color='#EDEDED', zorder=0)
    for e, score in enumerate(some):
        mean = score.accuracy.mean(axis=0)
        axes.plot(score.lengths, mean, color=color(e), marker='o', markersize=2.5, linewidth=1.2)
        if len(score.seeds) > 1:
            spread = score.accuracy.std(axis=0, ddof=1)
            low, high = np.maximum(mean - spread, 0), np.minimum(mean + spread, 1)
            axes.fill_between(score.lengths, low, high, color=color(e), alpha=0.15, linewidth=0)
        if score.released:
            lengths, paper = zip(*score.released.items(), strict=True)
            axes.plot(lengths, paper, color=color(e), **RELEASED)
    axes.set_xlim(first.lengths[0] - 0.5, first.lengths[-1] + 0.5)
    step = max(1, round(first.lengths[-1] / 4))
    axes.xaxis.set_major_locator(mpl.FixedLocator(range(step, first.lengths[-1] + 1, step)))
    axes.set_ylim(-0.03, 1.03)
    axes.set_title(task)
    axes.set_xlabel('length')
    axes.set_ylabel('exact match')
