"""Softmax temperature on synthetic tasks: exact match by length, a panel a task."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims import task_lambda as claims
from experiments.figures.claims.task_lambda import ROLES, ShownTemperatures
from experiments.figures.given import FigureInput, check_choice, check_options
from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import curves, scores
from experiments.figures.read.encoding_tasks.scores import Score

CURVE_KEYS = {'group', 'label', 'role'}
COLUMNS = 3


@kind('task_lambda')
class TaskLambdaFigure(EncodingFigure[ShownTemperatures]):
    """Options: curves, [{group, label, role}], each the name of records '<group>/<seed>' of one
    model on one task; role: 'base' for the model whose lambda was searched, once a task,
    'searched', or 'other'. Every task has the same curves. Compared is what is longer than the
    examples of all searches of its task, of which records say how long they were."""

    RULES = claims.RULES

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        curves.check_groups(name, options['curves'])
        roles: dict[str, str] = {}
        for curve in options['curves']:
            check_options(name, curve, CURVE_KEYS, tuple(CURVE_KEYS), 'curves')
            check_choice(name, 'role', curve['role'], ROLES)
            if roles.setdefault(curve['label'], curve['role']) != curve['role']:
                raise ValueError(
                    f'figure {name!r}: {curve["label"]!r} has the roles '
                    f'{roles[curve["label"]]!r} and {curve["role"]!r}; accepted: one for all tasks'
                )
        return {f'{curve["group"]}/': self.EVALUATION for curve in options['curves']}

    def read(self, given: FigureInput) -> ShownTemperatures:
        found = scores.read_all(given)
        roles = {curve['label']: curve['role'] for curve in given.options['curves']}
        until = {task: _until(given, task, some) for task, some in found.items()}
        return ShownTemperatures(found, roles, until)

    def picture(self, given: FigureInput, shown: ShownTemperatures) -> mpl.Figure:
        count = len(shown.scores)
        rows = math.ceil(count / COLUMNS)
        figure = style.new_figure(11.0, 0.9 + 2.9 * rows)
        grid = figure.add_gridspec(rows, min(COLUMNS, count))
        for number, (task, some) in enumerate(shown.scores.items()):
            axes = figure.add_subplot(grid[number // COLUMNS, number % COLUMNS])
            axes.axvline(shown.until[task] + 0.5, color=style.BLACK, linestyle=':', linewidth=1)
            accuracy_axes.draw(axes, task, some)
        first = next(iter(shown.scores.values()))
        handles = accuracy_axes.handles(first)
        line: dict[str, Any] = {'color': style.BLACK, 'linestyle': ':', 'linewidth': 1}
        handles.append(mpl.Line2D([], [], label='longest examples of a search', **line))
        figure.legend(handles=handles, loc='outside lower center', ncols=3)
        return figure

    def rows(self, given: FigureInput, shown: ShownTemperatures) -> Iterator[dict[str, Any]]:
        """One a record and length, each with the accuracy beyond the lengths of the searches."""
        for score in (score for some in shown.scores.values() for score in some):
            beyond = shown.beyond(score)
            for s, n in np.ndindex(score.accuracy.shape):
                yield {
                    'task': score.task,
                    'label': score.label,
                    'role': shown.roles[score.label],
                    'seed': score.seeds[s],
                    'length': int(score.lengths[n]),
                    'longest': score.longest,
                    'accuracy': float(score.accuracy[s, n]),
                    'samples': int(score.samples[n]),
                    'accuracy_beyond_search': float(beyond[s]),
                    'record': score.names[s],
                }

    def caption(self, given: FigureInput, shown: ShownTemperatures) -> str:
        first = next(iter(shown.scores.values()))
        count = len(first[0].seeds)
        seeds = 'one seed' if count == 1 else f'mean of {count} seeds, bands from lowest to highest'
        lengths = '; '.join(
            f'{task} to L = {some[0].longest}' for task, some in shown.scores.items()
        )
        ends = '; '.join(f'{task} {until}' for task, until in shown.until.items())
        return (
            f'Exact match by length, {seeds}; grey: lengths of training, on validation examples '
            f'({lengths}); dotted: longest examples of the searches ({ends}). '
            f'Lambda of {_lambdas(given, shown.scores)}. '
            f'{task_captions.models(given, shown.scores)}'
        )


def _until(given: FigureInput, task: str, some: Sequence[Score]) -> int:
    """Length of the longest examples of the task that weights or lambda have read. ValueError where
    a searched model's records do not say so, and where nothing longer was measured."""
    searched = {c['label'] for c in given.options['curves'] if c['role'] == claims.SEARCHED}
    until = 0
    for score in some:
        for name in score.names:
            read = given.records[name].attributes.get('longest_read')
            if read is None and score.label in searched:
                raise ValueError(
                    f'figure {given.name!r}, run {name!r}: no longest_read, the length of the '
                    'longest examples of its search; measure it again'
                )
            until = max(until, score.longest if read is None else read)
    if any(score.lengths.max() <= until for score in some):
        raise ValueError(
            f'figure {given.name!r}: no length of {task!r} beyond {until}, where searches end, was '
            'measured'
        )
    return until


def _lambdas(given: FigureInput, found: Mapping[str, Sequence[Score]]) -> str:
    """Lambda of each curve, of a searched one for each task."""
    described: dict[str, dict[str, None]] = {}
    for some in found.values():
        for score in some:
            lams = (given.records[name].attributes['lam'] for name in score.names)
            described.setdefault(score.label, {}).update(dict.fromkeys(lams))
    return '; '.join(f'{label}: {" / ".join(each)}' for label, each in described.items())
