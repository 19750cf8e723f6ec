"""Position encodings on synthetic tasks: mean reciprocal ranks, and accuracy by length per task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims import encodings as claims
from experiments.figures.given import FigureInput
from experiments.figures.kinds.encoding_tasks import accuracy_axes, captions, written
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import ranks, released, scores
from experiments.figures.read.encoding_tasks.ranks import Ranks
from experiments.figures.read.encoding_tasks.scores import Score

COLUMNS = 3  # of panels of tasks
WIDTHS = {1: 6.0, 2: 8.5, COLUMNS: 11.0}  # inches, by panels in a row


Ranked = tuple[Mapping[str, Sequence[Score]], Ranks]  # scores by task, and their ranks


@kind('encoding_ranks')
class EncodingRanksFigure(EncodingFigure[Ranked]):
    RULES = claims.RULES

    def read(self, given: FigureInput) -> Ranked:
        found = scores.read_all(given)
        return found, ranks.rank(found)

    def shown(self, given: FigureInput, data: Ranked) -> claims.ShownEncodings:
        """With ranks among the paper's encodings alone, which its claims are about."""
        found, _ = data
        known = {task: [s for s in some if s.paper] for task, some in found.items()}
        return claims.ShownEncodings(found, ranks.rank(known if all(known.values()) else found))

    def picture(self, given: FigureInput, data: Ranked) -> mpl.Figure:
        found, ranked = data
        columns = min(len(found), COLUMNS)
        rows = math.ceil(len(found) / columns)
        figure = style.new_figure(WIDTHS[columns], 3.2 + 2.7 * rows)
        grid = figure.add_gridspec(1 + rows, columns)
        first = next(iter(found.values()))
        handles = [*accuracy_axes.handles(first), *_bars(figure.add_subplot(grid[0, :]), ranked)]
        if any(score.released for some in found.values() for score in some):
            line = {'color': style.BLACK, **accuracy_axes.RELEASED}
            handles.append(mpl.Line2D([], [], label=f'{released.SOURCE}, by length', **line))
        for number, (task, some) in enumerate(found.items()):
            axes = figure.add_subplot(grid[1 + number // columns, number % columns])
            accuracy_axes.draw(axes, task, some)
        ncols = min(columns + 2, len(handles))
        figure.legend(handles=handles, loc='outside lower center', ncols=ncols)
        return figure

    def rows(self, given: FigureInput, data: Ranked) -> list[dict[str, Any]]:
        return written.rows(*data)

    def caption(self, given: FigureInput, data: Ranked) -> str:
        return captions.caption(given, *data)

    def markdown(self, given: FigureInput, data: Ranked) -> str:
        return written.markdown(*data)


def _bars(axes: mpl.Axes, ranked: Ranks) -> list[Any]:
    """Mean reciprocal ranks of all tasks and of each category. Returns handles of the seeds, and of
    the paper's ranks among the same encodings."""
    groups = {c: ranked.of(c) for c in (released.ALL, *released.CATEGORIES)}
    shown = {
        name: some
        for name, some in groups.items()
        if some is not None and (name == released.ALL or some.tasks != ranked.tasks)
    }
    count, seeds = len(ranked.labels), len(ranked.by_seed)
    width = 0.8 / count
    colors = list(style.colors_of(ranked.labels).values())
    apart = 0.25 * width * np.linspace(-1, 1, seeds) if seeds > 1 else np.zeros(1)
    for place, (name, some) in enumerate(shown.items()):
        for e in range(count):
            at = place + (e - (count - 1) / 2) * width
            axes.bar(at, some.mean[e], 0.92 * width, color=colors[e])
            axes.scatter(at + apart, some.by_seed[:, e], **accuracy_axes.SEEDS)
            if ranked.as_released:
                axes.plot(at, released.MRR[name][ranked.paper[e]], **accuracy_axes.DIAMOND)
    counts = [f'{len(s.tasks)} task{"s" if len(s.tasks) > 1 else ""}' for s in shown.values()]
    axes.set_xticks(range(len(shown)), [f'{n} ({c})' for n, c in zip(shown, counts, strict=True)])
    axes.set_ylim(0, 1.05)
    axes.set_ylabel('mean reciprocal rank')
    axes.grid(False, axis='x')
    handles: list[Any] = []
    if seeds > 1:
        handles.append(axes.scatter([], [], label='each seed', **accuracy_axes.SEEDS))
    if ranked.as_released:
        handles.append(
            mpl.Line2D([], [], label=f'{released.SOURCE}, 17 tasks', **accuracy_axes.DIAMOND)
        )
    return handles
