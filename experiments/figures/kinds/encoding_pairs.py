"""Exact match of encodings that are given no positions against those that are."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.intervals import LEVEL, Interval
from experiments.figures.claims.verdict import ABOVE, Bound
from experiments.figures.given import FigureInput
from experiments.figures.kinds.encoding_tasks import captions
from experiments.figures.kinds.encoding_tasks.accuracy_axes import DIAMOND
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read.encoding_tasks import released, scores
from experiments.figures.read.encoding_tasks.released import SOURCE
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

NOPE = 'NoPE'
TOLD = ('RoPE', 'ALiBi', 'T5', 'APE')
SEED: dict[str, Any] = {
    'color': style.BLACK,
    'linestyle': 'none',
    'marker': 'o',
    'markersize': 3,
    'markerfacecolor': 'white',
}
INTERVAL: dict[str, Any] = {
    'color': style.BLACK,
    'linestyle': 'none',
    'marker': '|',
    'markersize': 9,
}


@dataclasses.dataclass(frozen=True)
class Pair:
    """Accuracies beyond L of two encodings, over tasks: NoPE, say, against ALiBi.

    without, told: labels. without_paper, told_paper: the second paper's names, '' of one that it
    has not. tasks: [Q]. seeds: [S]. accuracies: [Q, S, 2], of the one without positions first.
    names: the records, [Q][S] pairs.
    """

    without: str
    told: str
    without_paper: str
    told_paper: str
    comparable: bool
    tasks: tuple[str, ...]
    seeds: tuple[str, ...]
    accuracies: np.ndarray
    names: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def leads(self) -> np.ndarray:
        """[Q, S] by how much the one without positions is ahead."""
        return self.accuracies[..., 0] - self.accuracies[..., 1]

    def released(self, task: str) -> tuple[float, float] | None:
        """Released means over seeds of both on a task; None where the paper lacks one, or they are
        not comparable."""
        if not self.comparable:
            return None
        found = [released.beyond(task, name) for name in (self.without_paper, self.told_paper)]
        return None if any(x is None for x in found) else tuple(float(x.mean()) for x in found)  # type: ignore[union-attr, return-value]

    @property
    def released_lead(self) -> float | None:
        """Mean difference over the tasks of the figure that the paper has numbers of."""
        known = [both for both in map(self.released, self.tasks) if both]
        return float(np.mean([a - b for a, b in known])) if known else None


# Scores by task, and the pairs that are compared.
Compared = tuple[Mapping[str, Sequence[Score]], Sequence[Pair]]


def _leads_of_nope(shown: Sequence[Pair]) -> dict[str, np.ndarray]:
    found = {pair.told_paper: pair for pair in shown if pair.without_paper == NOPE}
    missing = [name for name in TOLD if name not in found]
    if missing:
        raise Undecided(f'NoPE is not compared with the encoding {missing[0]!r}')
    return {f'{NOPE} - {name}': 100 * found[name].leads.mean(axis=0) for name in TOLD}


RULES: tuple[Rule[Sequence[Pair]], ...] = (
    Rule(
        'nope_beats_told',
        'Accuracy of NoPE over all examples beyond L, mean over the tasks of the figure, less that '
        f'of each of {", ".join(TOLD)}',
        Every(
            _leads_of_nope,
            Bound(ABOVE, 0, 'points'),
            'least lead in accuracy beyond L',
            'points',
            several=True,
        ),
        (NOPE, *TOLD),
    ),
)


@kind('encoding_pairs')
class EncodingPairsFigure(EncodingFigure[Compared]):
    """Options as of `EncodingFigure`, and `without`: labels of the encodings without positions.
    Each is compared with every other encoding."""

    OPTIONS = NEEDED = ('curves', 'without')
    RULES = RULES

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        needed = super().needs(name, options)
        labels = list(dict.fromkeys(curve['label'] for curve in options['curves']))
        without = list(options['without'])
        if not set(without) < set(labels):
            raise ValueError(
                f'figure {name!r}: without is {without}; accepted: some of the labels {labels}, '
                'and not all'
            )
        return needed

    def read(self, given: FigureInput) -> Compared:
        found = scores.read_all(given)
        return found, pairs(found, given.options['without'])

    def shown(self, given: FigureInput, data: Compared) -> Sequence[Pair]:
        return data[1]

    def picture(self, given: FigureInput, data: Compared) -> mpl.Figure:
        _, compared = data
        firsts = list(dict.fromkeys(pair.without for pair in compared))
        figure = style.new_figure(3.6 * (len(firsts) + 1) + 0.4, 4.1)
        grid = figure.subplots(1, len(firsts) + 1, squeeze=False)
        tolds = list(dict.fromkeys(pair.told for pair in compared))
        for first, axes in zip(firsts, grid[0], strict=False):
            _scatter(axes, [pair for pair in compared if pair.without == first])
        _draw_leads(grid[0, -1], compared, firsts)
        handles: list[Any] = [
            mpl.Line2D([], [], linestyle='none', marker='o', color=color, label=told)
            for told, color in style.colors_of(tolds).items()
        ]
        if len(compared[0].seeds) > 1:
            handles.append(mpl.Line2D([], [], label='each seed (right)', **SEED))
            handles.append(mpl.Line2D([], [], label='95 % interval', **INTERVAL))
        if any(pair.released(task) for pair in compared for task in pair.tasks):
            handles.append(
                mpl.Line2D([], [], label=f'{SOURCE}, the same tasks, means of seeds', **DIAMOND)
            )
        ncols = min(2 * len(grid[0]), len(handles))
        figure.legend(handles=handles, loc='outside lower center', ncols=ncols)
        return figure

    def rows(self, given: FigureInput, data: Compared) -> Iterator[dict[str, Any]]:
        """One a pair, task and seed."""
        for pair in data[1]:
            for (q, task), (s, seed) in itertools.product(
                enumerate(pair.tasks), enumerate(pair.seeds)
            ):
                theirs = pair.released(task) or (None, None)
                yield {
                    'without': pair.without,
                    'given': pair.told,
                    'task': task,
                    'seed': seed,
                    'accuracy_without': float(pair.accuracies[q, s, 0]),
                    'accuracy_given': float(pair.accuracies[q, s, 1]),
                    'lead': float(pair.leads[q, s]),
                    'released_without': theirs[0],
                    'released_given': theirs[1],
                    'record_without': pair.names[q][s][0],
                    'record_given': pair.names[q][s][1],
                }

    def markdown(self, given: FigureInput, data: Compared) -> str:
        """Mean leads of each task and of all, released ones in brackets."""
        _, compared = data
        rows = []
        for pair in compared:
            cells = [f'{pair.without} - {pair.told}']
            for task, lead in zip(pair.tasks, pair.leads.mean(axis=1), strict=True):
                both = pair.released(task)
                cells.append(f'{lead:.3f}' + (f' ({both[0] - both[1]:.2f})' if both else ''))
            paper = pair.released_lead
            cells.append(f'{pair.leads.mean():.3f}' + ('' if paper is None else f' ({paper:.2f})'))
            rows.append([*cells, f'{int((pair.leads > 0).sum())} of {pair.leads.size}'])
        return table_of(['', *compared[0].tasks, 'mean', 'ahead'], rows)

    def caption(self, given: FigureInput, data: Compared) -> str:
        found, compared = data
        first = compared[0]
        count = len(first.seeds)
        bars = f', bars: {LEVEL} percent intervals over {count} seeds' if count > 1 else ''
        diamonds = ''
        if any(pair.released(task) for pair in compared for task in pair.tasks):
            diamonds = f' Diamonds: {SOURCE}, on those of the tasks that it has results of.'
        return (
            'Exact match over all examples longer than those of training, of encodings that are '
            'given no positions against those that are: a point for every task and seed, above the '
            'diagonal the one without is ahead. Right: its lead, mean of '
            f'{", ".join(first.tasks)}{bars}.{diamonds} {captions.models(given, found)}'
        )


def pairs(found: Mapping[str, Sequence[Score]], without: Collection[str]) -> list[Pair]:
    """Every encoding whose label is in `without` against every other one, in their order."""
    labels = [score.label for score in next(iter(found.values()))]
    told = [e for e, label in enumerate(labels) if label not in without]
    return [
        _pair(found, labels.index(first), second)
        for first in dict.fromkeys(without)
        for second in told
    ]


def _pair(found: Mapping[str, Sequence[Score]], first: int, second: int) -> Pair:
    some = [(scores[first], scores[second]) for scores in found.values()]
    one, other = some[0]
    return Pair(
        without=one.label,
        told=other.label,
        without_paper=one.paper,
        told_paper=other.paper,
        comparable=all(score.comparable for both in some for score in both),
        tasks=tuple(found),
        seeds=one.seeds,
        accuracies=np.stack([np.stack([a.beyond, b.beyond], axis=-1) for a, b in some]),
        names=tuple(tuple(zip(a.names, b.names, strict=True)) for a, b in some),
    )


def _scatter(axes: mpl.Axes, some: Sequence[Pair]) -> None:
    """A point a task and seed; above the diagonal the encoding without positions is ahead."""
    axes.plot([0, 1], [0, 1], color=style.GREY, linewidth=0.8, zorder=1)
    colors = style.colors_of(pair.told for pair in some)
    for pair in some:
        without, told = pair.accuracies.reshape(-1, 2).T
        axes.scatter(told, without, s=16, color=colors[pair.told], alpha=0.8, zorder=3)
        for both in filter(None, map(pair.released, pair.tasks)):
            axes.plot(both[1], both[0], **DIAMOND | {'markeredgecolor': colors[pair.told]})
    axes.set_xlim(-0.03, 1.03)
    axes.set_ylim(-0.03, 1.03)
    axes.set_aspect('equal')
    axes.set_title(some[0].without)
    axes.set_xlabel('exact match beyond L, given positions')
    axes.set_ylabel('exact match beyond L, without positions')


def _draw_leads(axes: mpl.Axes, compared: Sequence[Pair], firsts: Sequence[str]) -> None:
    """Mean leads over tasks with their interval over seeds, and each seed's."""
    axes.axhline(0, color=style.GREY, linewidth=0.8, zorder=1)
    tolds = list(dict.fromkeys(pair.told for pair in compared))
    for pair in compared:
        place, e = firsts.index(pair.without), tolds.index(pair.told)
        at = place + (e - (len(tolds) - 1) / 2) * 0.8 / len(tolds)
        by_seed = pair.leads.mean(axis=0)
        found = Interval.of(by_seed)
        color = style.colors_of(tolds)[pair.told]
        axes.errorbar(
            at, found.mean, [[found.mean - found.low], [found.high - found.mean]],
            color=color, marker='o', markersize=5, capsize=2, linewidth=1.0,
        )  # fmt: skip
        if len(by_seed) > 1:
            axes.scatter(
                [at] * len(by_seed), by_seed, s=8, color='white', edgecolors=color, zorder=3
            )
        paper = pair.released_lead
        if paper is not None:
            axes.plot(at, paper, **DIAMOND | {'markeredgecolor': color})
    axes.set_xticks(range(len(firsts)), [first.replace(', ', ',\n') for first in firsts])
    axes.set_xlim(-0.6, len(firsts) - 0.4)
    axes.grid(False, axis='x')
    axes.set_title('lead, mean of tasks')
    axes.set_ylabel('difference of exact match beyond L')
