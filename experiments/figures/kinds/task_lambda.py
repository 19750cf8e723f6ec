"""Softmax temperature on synthetic tasks: exact match by length, a panel a task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_choice,
    check_options,
    check_records,
    runs_of,
)
from experiments.figures.claims import task_lambda as claims
from experiments.figures.claims.decide import decide
from experiments.figures.claims.task_lambda import ROLES, ShownTemperatures
from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import curves, scores
from experiments.figures.read.encoding_tasks.scores import Score

check_known = curves.check_known
OPTIONS = {'curves'}
CURVE_KEYS = {'group', 'label', 'role'}
MEASURES = {'exact_match': {'accuracy': ('length',), 'samples': ('length',)}}
COLUMNS = 3


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('curves',))
    curves.check_groups(name, options['curves'])
    roles: dict[str, str] = {}
    for curve in options['curves']:
        check_options(name, curve, CURVE_KEYS, tuple(CURVE_KEYS), 'curves')
        check_choice(name, 'role', curve['role'], ROLES)
        if roles.setdefault(curve['label'], curve['role']) != curve['role']:
            raise ValueError(
                f'figure {name!r}: {curve["label"]!r} has the roles {roles[curve["label"]]!r} and '
                f'{curve["role"]!r}; accepted: one for all tasks'
            )
    return {f'{curve["group"]}/': 'exact_match' for curve in options['curves']}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, role}], each the name of records '<group>/<seed>' of one
    model on one task; role: 'base' for the model whose lambda was searched, once a task,
    'searched', or 'other'. Every task has the same curves. Compared is what is longer than the
    examples of all searches of its task, of which records say how long they were."""
    check_records(given, required(given.name, given.options), MEASURES)
    every = [scores.read(given, curve) for curve in given.options['curves']]
    found = scores.by_task(given, every)
    roles = {curve['label']: curve['role'] for curve in given.options['curves']}
    shown = ShownTemperatures(
        found, roles, {task: _until(given, task, some) for task, some in found.items()}
    )
    return FigureOutput(
        given.name,
        _picture(shown),
        _rows(shown),
        _caption(given, shown),
        decide(claims.RULES, shown),
        runs_of(given, [name for score in every for name in score.names]),
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


def _picture(shown: ShownTemperatures) -> mpl.Figure:
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


def _rows(shown: ShownTemperatures) -> list[dict[str, Any]]:
    """One row a record and length, each with the accuracy beyond the lengths of the searches."""
    return [
        {
            'task': task,
            'label': score.label,
            'role': shown.roles[score.label],
            'seed': seed,
            'length': int(length),
            'longest': score.longest,
            'accuracy': float(score.accuracy[s, n]),
            'samples': int(score.samples[n]),
            'accuracy_beyond_search': float(shown.beyond(score)[s]),
            'record': score.names[s],
        }
        for task, some in shown.scores.items()
        for score in some
        for s, seed in enumerate(score.seeds)
        for n, length in enumerate(score.lengths)
    ]


def _caption(given: FigureInput, shown: ShownTemperatures) -> str:
    first = next(iter(shown.scores.values()))
    count = len(first[0].seeds)
    seeds = 'one seed' if count == 1 else f'mean of {count} seeds, bands from lowest to highest'
    lengths = '; '.join(f'{task} to L = {some[0].longest}' for task, some in shown.scores.items())
    ends = '; '.join(f'{task} {until}' for task, until in shown.until.items())
    return (
        f'Exact match by length, {seeds}; grey: lengths of training, on validation examples '
        f'({lengths}); dotted: longest examples of the searches ({ends}). '
        f'Lambda of {_lambdas(given, shown.scores)}. {task_captions.models(given, shown.scores)}'
    )


def _lambdas(given: FigureInput, found: Mapping[str, Sequence[Score]]) -> str:
    """Lambda of each curve, of a searched one for each task."""
    described: dict[str, dict[str, None]] = {}
    for some in found.values():
        for score in some:
            lams = (given.records[name].attributes['lam'] for name in score.names)
            described.setdefault(score.label, {}).update(dict.fromkeys(lams))
    return '; '.join(f'{label}: {" / ".join(each)}' for label, each in described.items())
