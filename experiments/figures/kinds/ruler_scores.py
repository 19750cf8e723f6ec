"""RULER by task and length, a panel a model, with effective lengths by three rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims import ruler as claims
from experiments.figures.claims.ruler import RULES_OF_LENGTH, said
from experiments.figures.given import (
    FigureInput,
    Measures,
    check_options,
)
from experiments.figures.look import captions, cells, mpl, style
from experiments.figures.read import ruler_panel
from experiments.figures.read.ruler_panel import RulerPanel

PANEL_KEYS = {'record', 'label', 'loss'}
MOST = 4  # panels in a row


@kind('ruler_scores')
class RulerScoresFigure(Figure[Sequence[RulerPanel]]):
    """Options: panels, [{record, label, loss}], loss the record of the same model's loss by
    position, where it was measured. All panels have the same tasks and lengths."""

    OPTIONS = NEEDED = ('panels',)
    MEASURES: ClassVar[Measures] = {
        'ruler': {
            'score': ('length', 'task'),
            'average': ('length',),
            'tokens': ('length', 'task'),
        },
        'positions': {'loss': ('position',), 'loss_std': ('position',)},
    }
    RULES = claims.RULES

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for panel in options['panels']:
            check_options(name, panel, PANEL_KEYS, ('record', 'label'), 'panels')
        labels = [panel['label'] for panel in options['panels']]
        if len(set(labels)) < len(labels) or len(labels) > MOST:
            raise ValueError(f'figure {name!r}: panels must be 1 to {MOST} labels, got {labels}')
        scores = {panel['record']: 'ruler' for panel in options['panels']}
        return scores | {p['loss']: 'positions' for p in options['panels'] if p.get('loss')}

    def read(self, given: FigureInput) -> Sequence[RulerPanel]:
        panels = [ruler_panel.read(given, chosen) for chosen in given.options['panels']]
        first = panels[0]
        for panel in panels[1:]:
            if (panel.tasks, panel.lengths) != (first.tasks, first.lengths):
                raise ValueError(
                    f'figure {given.name!r}: {panel.label!r} has other tasks or lengths than '
                    f'{first.label!r}'
                )
        return panels

    def picture(self, given: FigureInput, panels: Sequence[RulerPanel]) -> mpl.Figure:
        first = panels[0]
        width = max(3.6, 0.62 * len(first.lengths) + 1.2)
        figure = style.new_figure(width * len(panels) + 1.6, 0.26 * len(first.tasks) + 2.3)
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for number, (axes, panel) in enumerate(zip(grid, panels, strict=True)):
            _draw(axes, panel, named=number == 0)
            axes.set_xlabel(f'length ({captions.token_name(given.records[first.names[0]])}s)')
        cells.add_bar(figure, list(grid), 100, 'score')
        return figure

    def rows(self, given: FigureInput, panels: Sequence[RulerPanel]) -> list[dict[str, Any]]:
        return [row for panel in panels for row in ruler_panel.rows(panel)]

    def caption(self, given: FigureInput, panels: Sequence[RulerPanel]) -> str:
        first = panels[0]
        facts = given.records[first.names[0]].attributes
        short = first.tokens_K / np.array(first.lengths)
        rules = '; '.join(f'{rule}, {text}' for rule, text in RULES_OF_LENGTH.items())
        loss = {p.label: [given.records[p.loss.name]] for p in panels if p.loss is not None}
        read = f' Loss: {captions.sources(loss)}' if loss else ''
        labelled = {p.label: [given.records[p.names[0]]] for p in panels}
        return (
            'RULER (arXiv 2404.06654): scores from 0 to 100 by task and length, '
            f'{facts["samples"]:,} samples each, and their mean over tasks. A length is that of a '
            f'prompt and the room for its answer; prompts have {100 * short.min():.0f} to '
            f'{100 * short.max():.0f} % of it. Above a panel its effective length by three rules: '
            f'{rules}. {captions.sources(labelled)}{read}'
        )

    def markdown(self, given: FigureInput, panels: Sequence[RulerPanel]) -> str:
        """One table a panel, tasks by lengths, with the effective lengths below."""
        parts = []
        for panel in panels:
            head = f'| {panel.label} | {" | ".join(f"{n:,}" for n in panel.lengths)} |'
            lines = [head, '| --- |' + ' ---: |' * len(panel.lengths)]
            rows = [*zip(panel.tasks, panel.score_KQ.T, strict=True), ('**mean**', panel.average_K)]
            lines += [f'| {task} | {" | ".join(f"{x:.1f}" for x in row)} |' for task, row in rows]
            parts.append('\n'.join(lines))
            parts.append(
                '; '.join(f'{rule}: {said(panel, rule)}' for rule in RULES_OF_LENGTH) + '.'
            )
        return '\n\n'.join(parts) + '\n'


def _draw(axes: mpl.Axes, panel: RulerPanel, named: bool) -> None:
    """Tasks from above, their mean below a line."""
    shown_RK = np.concatenate([panel.score_KQ.T, panel.average_K[None]])
    cells.draw(axes, shown_RK, 100, '.0f')
    axes.axhline(len(panel.tasks), color=style.BLACK, linewidth=1.5)
    axes.set_xticks(np.arange(len(panel.lengths)) + 0.5, [f'{n:,}' for n in panel.lengths])
    axes.tick_params(axis='x', labelrotation=30 if len(panel.lengths) > 3 else 0)
    names = [*panel.tasks, 'mean'] if named else [''] * (len(panel.tasks) + 1)
    axes.set_yticks(np.arange(len(names)) + 0.5, names)
    lines = [f'{rule}: {said(panel, rule)}' for rule in RULES_OF_LENGTH]
    axes.set_title('\n'.join([panel.label, *lines]), fontsize=8.5)
