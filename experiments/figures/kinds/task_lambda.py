"""Softmax temperature on synthetic tasks: exact match by length, a panel a task."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval, stated
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.given import FigureInput, check_choice, check_options
from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import curves, scores
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

BASE, SEARCHED, OTHER = ROLES = ('base', 'searched', 'other')
LEAST = CLAIMS['temperature_carries_tasks'].thresholds['points']

CURVE_KEYS = {'group', 'label', 'role'}
COLUMNS = 3
UNTIL: dict[str, Any] = {'color': style.BLACK, 'linestyle': ':', 'linewidth': 1}


@dataclasses.dataclass(frozen=True)
class ShownTemperatures:
    """Content of a figure: scores of every task, the role of each label, and by task the length of
    the longest examples of the searches."""

    scores: Mapping[str, Sequence[Score]]
    roles: Mapping[str, str]
    until: Mapping[str, int]

    def beyond(self, score: Score) -> np.ndarray:
        """[S] accuracies over all examples that are longer than those of the searches."""
        chosen = score.lengths > self.until[score.task]
        weights = score.samples[chosen]
        return score.accuracy[:, chosen] @ weights / weights.sum()

    def labelled(self, role: str) -> list[str]:
        return [label for label, found in self.roles.items() if found == role]

    def mean(self, label: str) -> np.ndarray:
        """[S] mean of `beyond` over the tasks."""
        every = [s for some in self.scores.values() for s in some if s.label == label]
        return np.mean([self.beyond(score) for score in every], axis=0)


def _carries(shown: ShownTemperatures) -> Measured:
    bases, searched = shown.labelled(BASE), shown.labelled(SEARCHED)
    if len(bases) != 1 or not searched:
        raise Undecided('there is no searched curve beside one base')
    base = shown.mean(bases[0])
    margins = {
        f'{label} - {bases[0]}': Interval.of(100 * (shown.mean(label) - base), True, label)
        for label in searched
    }
    verdicts = {name: Bound(ABOVE, LEAST).holds(found) for name, found in margins.items()}
    holds = next(found for found in (True, None, False) if found in verdicts.values())
    best = max(
        (name for name, found in verdicts.items() if found is holds),
        key=lambda name: margins[name].mean,
    )
    what = f'greatest gain beyond the search, {best}'
    return stated(margins), holds, (number(what, margins[best], 'points'),)


RULES: tuple[Rule[ShownTemperatures], ...] = (
    Rule(
        'temperature_carries_tasks',
        'Exact match over all examples longer than those of the search, mean over tasks: with one '
        'of the searched temperatures it is above that of the model as trained by more than '
        f'{LEAST:g} points; {OVER_SEEDS}.',
        _carries,
        (BASE, SEARCHED),
    ),
)


@kind('task_lambda')
class TaskLambdaFigure(EncodingFigure[ShownTemperatures]):
    """Options: curves, [{group, label, role}], each the name of records '<group>/<seed>' of one
    model on one task; role: 'base' for the model whose lambda was searched, once a task,
    'searched', or 'other'. Every task has the same curves. Compared is what is longer than the
    examples of all searches of its task, of which records say how long they were."""

    RULES = RULES

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
        for place, (task, some) in enumerate(shown.scores.items()):
            axes = figure.add_subplot(grid[place // COLUMNS, place % COLUMNS])
            axes.axvline(shown.until[task] + 0.5, **UNTIL)
            accuracy_axes.draw(axes, task, some)
        first = next(iter(shown.scores.values()))
        handles = accuracy_axes.handles(first)
        handles.append(mpl.Line2D([], [], label='longest examples of a search', **UNTIL))
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
    searched = {c['label'] for c in given.options['curves'] if c['role'] == SEARCHED}
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
