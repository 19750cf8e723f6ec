"""Softmax temperature on synthetic tasks: exact match by length, a panel a task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures import mpl, style
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
from experiments.figures.claims.task_lambda import ROLES, Shown
from experiments.figures.encoding_tasks import accuracy_axes, scores
from experiments.figures.encoding_tasks import captions as task_captions
from experiments.figures.encoding_tasks.scores import Score

OPTIONS = {'curves', 'until'}
CURVE_KEYS = {'group', 'label', 'role'}
MEASURES = {'exact_match': {'accuracy': ('length',), 'samples': ('length',)}}
COLUMNS = 3


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('curves', 'until'))
    for curve in options['curves']:
        check_options(name, curve, CURVE_KEYS, tuple(CURVE_KEYS), 'curves')
        check_choice(name, 'role', curve['role'], ROLES)
    if not options['until'] >= 1:
        raise ValueError(f'figure {name!r}: until is {options["until"]!r}; it must be at least 1')
    return {f'{curve["group"]}/': 'exact_match' for curve in options['curves']}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, role}], each the name of records '<group>/<seed>' of one
    model on one task; role: 'base' for the model whose lambda was searched, once a task,
    'searched', or 'other'. until: the longest examples of the searches, in longest ones of
    training. Every task has the same curves."""
    check_records(given, required(given.name, given.options), MEASURES)
    every = [scores.read(given, curve) for curve in given.options['curves']]
    found = scores.by_task(given, every)
    if any(s.lengths.max() <= given.options['until'] * s.longest for s in every):
        raise ValueError(
            f'figure {given.name!r}: no length beyond until = {given.options["until"]:g} L was '
            'measured'
        )
    roles = {curve['label']: curve['role'] for curve in given.options['curves']}
    shown = Shown(found, roles, given.options['until'])
    return FigureOutput(
        given.name,
        _picture(shown),
        _rows(shown),
        _caption(given, shown),
        decide(claims.RULES, shown),
        runs_of(given, [name for score in every for name in score.names]),
    )


def _picture(shown: Shown) -> mpl.Figure:
    count = len(shown.scores)
    rows = math.ceil(count / COLUMNS)
    figure = style.new_figure(11.0, 0.9 + 2.9 * rows)
    grid = figure.add_gridspec(rows, min(COLUMNS, count))
    for number, (task, some) in enumerate(shown.scores.items()):
        axes = figure.add_subplot(grid[number // COLUMNS, number % COLUMNS])
        end = shown.until * some[0].longest
        axes.axvline(end + 0.5, color=style.BLACK, linestyle=':', linewidth=1)
        accuracy_axes.draw(axes, task, some)
    first = next(iter(shown.scores.values()))
    handles = [
        mpl.Line2D([], [], color=accuracy_axes.color(e), label=score.label)
        for e, score in enumerate(first)
    ]
    line: dict[str, Any] = {'color': style.BLACK, 'linestyle': ':', 'linewidth': 1}
    handles.append(mpl.Line2D([], [], label='longest examples of a search', **line))
    figure.legend(handles=handles, loc='outside lower center', ncols=3)
    return figure


def _rows(shown: Shown) -> list[dict[str, Any]]:
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


def _caption(given: FigureInput, shown: Shown) -> str:
    first = next(iter(shown.scores.values()))
    count = len(first[0].seeds)
    seeds = 'one seed' if count == 1 else f'mean of {count} seeds, bands of one standard deviation'
    lengths = '; '.join(f'{task} to L = {some[0].longest}' for task, some in shown.scores.items())
    return (
        f'Exact match by length, {seeds}; grey: lengths of training, on validation examples '
        f'({lengths}); dotted: {shown.until:g} L, where the longest examples of the searches end. '
        f'Lambda of {_lambdas(given, shown.scores)}. {task_captions.models(given, shown.scores)}'
    )


def _lambdas(given: FigureInput, found: Mapping[str, Sequence[Score]]) -> str:
    """Lambda of each curve, of a searched one for each task."""
    described: dict[str, dict[str, None]] = {}
    for some in found.values():
        for score in some:
            lam = given.records[score.names[0]].attributes['lam']
            described.setdefault(score.label, {})[lam] = None
    return '; '.join(f'{label}: {" / ".join(each)}' for label, each in described.items())
