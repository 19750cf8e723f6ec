"""Scratchpads on synthetic tasks: ranks of their formats, and accuracies by format and encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figures.base import kind
from experiments.figures.claims import scratchpads as claims
from experiments.figures.given import FigureInput
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.kinds.scratchpads import axes as bar_axes
from experiments.figures.kinds.scratchpads import written
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.scratchpads import bars, formats
from experiments.figures.read.scratchpads.bars import Bars


@kind('scratchpad_bars')
class ScratchpadBarsFigure(EncodingFigure[Mapping[str, Bars]]):
    """Options as of `EncodingFigure`: one encoding on one task with one format of scratchpad each,
    as the records say. Every format of a task has the same encodings."""

    FACTS = ('task', 'scratchpad')
    RULES = claims.RULES

    def read(self, given: FigureInput) -> Mapping[str, Bars]:
        return bars.read(given)

    def shown(self, given: FigureInput, found: Mapping[str, Bars]) -> claims.ShownFormats:
        return claims.ShownFormats(found)

    def picture(self, given: FigureInput, found: Mapping[str, Bars]) -> mpl.Figure:
        labels, names = bars.all_labels(found.values()), bars.all_formats(found.values())
        colors = style.colors_of(labels)
        figure = style.new_figure(11.0, 5.8 + 2.6 * len(found))
        grid = figure.add_gridspec(2 + len(found), 1)
        bar_axes.ranks(figure.add_subplot(grid[0]), found, names)
        bar_axes.ranks_by_encoding(figure.add_subplot(grid[1]), found, names, labels)
        handles: list[Any] = [
            mpl.Line2D(
                [],
                [],
                color=bar_axes.format_color(f, len(names)),
                linewidth=5,
                label=formats.words(name),
            )
            for f, name in enumerate(names)
        ]
        figure.legend(handles=handles, loc='outside upper center', ncols=len(names))
        for number, some in enumerate(found.values(), 2):
            bar_axes.accuracies(figure.add_subplot(grid[number]), some, colors)
        handles = [
            mpl.Line2D([], [], color=color, linewidth=5, label=label)
            for label, color in colors.items()
        ]
        handles += [
            mpl.Line2D([], [], label='inside L', color=style.GREY, **bar_axes.INSIDE),
            mpl.Line2D(
                [], [], label='scratchpad right in every step, beyond L', **bar_axes.REASONED
            ),
            mpl.Line2D([], [], label=released.SOURCE, **bar_axes.RELEASED),
        ]
        figure.legend(handles=handles, loc='outside lower center', ncols=4)
        return figure

    def rows(self, given: FigureInput, found: Mapping[str, Bars]) -> list[dict[str, Any]]:
        return written.rows(found)

    def caption(self, given: FigureInput, found: Mapping[str, Bars]) -> str:
        count = len(next(iter(found.values())).seeds)
        seeds = 'one seed' if count == 1 else f'{count} seeds (white dots: each)'
        unparsed = sum(
            given.records[name].attributes.get('right_unparsed', 0)
            for some in found.values()
            for row in some.cells
            for cell in row
            for name in cell.score.names
        )
        scores = {
            task: [x.score for row in some.cells for x in row] for task, some in found.items()
        }
        return (
            'Above: mean reciprocal rank of the formats of scratchpads by accuracy over all '
            f'examples longer than those of training, over encodings and {seeds}; those with equal '
            'accuracies share the mean of their ranks. Under it by encoding, over the tasks that '
            'have it. Below: exact match of final answers beyond L (bars) and '
            'inside L on validation examples (lines), and shares of scratchpads that are right in '
            f'every step beyond L (crosses). Diamonds: {released.SOURCE}, at its own lengths, '
            'ranks read off its Figure 6, which has eight formats. '
            f'Right answers behind a scratchpad that does not parse: {unparsed:,}. '
            f'{task_captions.models(given, scores)}'
        )

    def markdown(self, given: FigureInput, found: Mapping[str, Bars]) -> str:
        return written.markdown(found)
