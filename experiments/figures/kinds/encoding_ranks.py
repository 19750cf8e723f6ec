"""Position encodings on synthetic tasks: mean reciprocal ranks, and accuracy by length per task."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.given import FigureInput
from experiments.figures.kinds.encoding_tasks import accuracy_axes, captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read.encoding_tasks import ranks, released, scores
from experiments.figures.read.encoding_tasks.ranks import ALIKE, Ranks
from experiments.figures.read.encoding_tasks.scores import Score
from experiments.figures.roles import Undecided

NOPE, APE = 'NoPE', 'APE'
ORDER = ('NoPE', 'T5', 'ALiBi', 'RoPE', 'APE')
COPYING = 'rsc'
# Of cmc every encoding has 0.89 to 0.90 inside L (released results).
SOLVED = ('rsc', 'rsc2x', 'rdc', 'cmc2x', 'mc', 'mc2x', 'mcrv')

COLUMNS = 3  # of panels of tasks
WIDTHS = {1: 6.0, 2: 8.5, COLUMNS: 11.0}  # inches, by panels in a row


@dataclasses.dataclass(frozen=True)
class Ranked:
    """Scores of every task, and their reciprocal ranks."""

    scores: Mapping[str, Sequence[Score]]
    ranks: Ranks

    def apart(self, first: str, second: str, *, shared: bool) -> np.ndarray:
        """[S] differences of two mean reciprocal ranks. shared: whether accuracies that are alike
        share their ranks. Undecided where the figure has no such encoding."""
        ranks = (self.ranks.shared if shared else self.ranks.first).mean(axis=1)
        indices = [self.ranks.at(paper) for paper in (first, second)]
        for paper, index in zip((first, second), indices, strict=True):
            if index is None:
                raise Undecided(f'no curve is of the encoding {paper!r}')
        return ranks[:, indices[0]] - ranks[:, indices[1]]

    def beyond(self, task: str) -> dict[str, np.ndarray]:
        """Encoding of the paper -> [S] accuracies beyond L."""
        if task not in self.scores:
            raise Undecided(f'the task {task!r} was not measured')
        return {s.paper: s.beyond for s in self.scores[task] if s.paper}


def _ranked(claim: str, said: str, pairs: Sequence[tuple[str, str]]) -> Rule[Ranked]:
    """The rule that the first encoding of each pair ranks above the second. It must do so in the
    paper's way, whose numbers are told, and where accuracies that are alike share their ranks."""
    bound = Bound(ABOVE, 0, CLAIMS[claim].thresholds['rank'])

    def decided(shown: Ranked, shared: bool) -> Measured:
        return Every[Ranked](
            lambda shown: {f'{a} - {b}': shown.apart(a, b, shared=shared) for a, b in pairs},
            bound,
            'least lead in mean reciprocal rank',
            '',
            several=True,
        )(shown)

    def measure(shown: Ranked) -> Measured:
        (measured, first, numbers), (_, shared, _) = decided(shown, False), decided(shown, True)
        return measured, first if first == shared else None, numbers

    statement = (
        'Mean reciprocal ranks of the five encodings by accuracy beyond L, over the tasks of the '
        f'figure, equal accuracies in the order {", ".join(released.ENCODINGS)}: {said}. '
        f'Accuracies that differ by at most {ALIKE} may share their ranks; where the two ways '
        f'differ nothing is decided. A difference of at most {bound.margin} decides nothing, and '
        f'{OVER_SEEDS}.'
    )
    return Rule(claim, statement, measure, ORDER, bound)


def _copies(shown: Ranked) -> dict[str, np.ndarray]:
    found = shown.beyond(COPYING)
    missing = [name for name in ORDER if name not in found]
    if missing:
        raise Undecided(f'no curve is of the encoding {missing[0]!r}')
    return {f'{NOPE} - {other}': 100 * (found[NOPE] - found[other]) for other in ORDER[1:]}


def _solve(shown: Ranked) -> dict[str, np.ndarray]:
    return {
        f'{s.label} on {task}': 100 * s.inside
        for task, scores in shown.scores.items()
        if task in SOLVED
        for s in scores
        if s.paper
    }


RULES: tuple[Rule[Ranked], ...] = (
    _ranked(
        'nope_ranks_first', "NoPE's is above each other one", [(NOPE, other) for other in ORDER[1:]]
    ),
    _ranked(
        'encodings_rank_in_order',
        f'each of {", ".join(ORDER)} is above the next one',
        list(itertools.pairwise(ORDER)),
    ),
    _ranked(
        'sinusoidal_ranks_last',
        "APE's is below each other one",
        [(other, APE) for other in ORDER[:-1]],
    ),
    Rule(
        'nope_copies_longest',
        'Accuracy of NoPE on rsc over all examples beyond L less that of each other encoding',
        Every(
            _copies,
            Bound(ABOVE, 0, 'points'),
            'least lead in accuracy beyond L',
            'points',
            several=True,
        ),
        ORDER,
    ),
    Rule(
        'all_solve_inside',
        'Accuracy over all validation examples of every task of copying and reversal but cmc, with '
        'every encoding of the paper',
        Every(_solve, Bound(ABOVE, 'points'), 'lowest accuracy inside L', '%', several=True),
        ORDER,
    ),
)


@kind('encoding_ranks')
class EncodingRanksFigure(EncodingFigure[Ranked]):
    RULES = RULES

    def read(self, given: FigureInput) -> Ranked:
        found = scores.read_all(given)
        return Ranked(found, ranks.rank(found))

    def shown(self, given: FigureInput, data: Ranked) -> Ranked:
        """With ranks among the paper's encodings alone, which its claims are about."""
        known = {task: [s for s in some if s.paper] for task, some in data.scores.items()}
        return Ranked(data.scores, ranks.rank(known)) if all(known.values()) else data

    def picture(self, given: FigureInput, data: Ranked) -> mpl.Figure:
        found, ranked = data.scores, data.ranks
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
        """One row a record and length, each with the accuracies over all lengths and its ranks."""
        return [
            {
                'task': task,
                'category': released.category(task),
                'label': score.label,
                'seed': seed,
                'length': int(length),
                'longest': score.longest,
                'accuracy': float(score.accuracy[s, n]),
                'samples': int(score.samples[n]),
                'accuracy_inside': float(score.inside[s]),
                'accuracy_beyond': float(score.beyond[s]),
                'reciprocal_rank': float(data.ranks.first[s, q, e]),
                'reciprocal_rank_shared': float(data.ranks.shared[s, q, e]),
                'released': score.released.get(int(length)),
                'released_beyond': score.released_beyond,
                'released_longest': released.longest(task),
                'record': score.names[s],
            }
            for q, (task, some) in enumerate(data.scores.items())
            for e, score in enumerate(some)
            for s, seed in enumerate(score.seeds)
            for n, length in enumerate(score.lengths)
        ]

    def markdown(self, given: FigureInput, data: Ranked) -> str:
        """Mean reciprocal ranks, then accuracies beyond L, each with released ones in brackets."""
        ranked, means, accuracies = data.ranks, [], []
        for name in (released.ALL, *released.CATEGORIES):
            chosen = ranked.of(name)
            if chosen is not None:
                cells = [
                    f'{x:.2f}' + (f' ({released.MRR[name][p]:.2f})' if ranked.as_released else '')
                    for x, p in zip(chosen.mean, ranked.paper, strict=True)
                ]
                means.append([f'{name} ({", ".join(chosen.tasks)})', *cells])
        for task, some in data.scores.items():
            cells = [' / '.join(f'{x:.3f}' for x in s.beyond) + _theirs(s) for s in some]
            accuracies.append([f'{task}, L = {some[0].longest}', *cells])
        bracket = ' (released, of 17 tasks, in brackets)' if ranked.as_released else ''
        head = ['', *ranked.labels]
        return (
            f'Mean reciprocal rank{bracket}:\n\n{table_of(head, means)}\n'
            'Accuracy beyond L, each seed (released mean in brackets):\n\n'
            f'{table_of(head, accuracies)}'
        )

    def caption(self, given: FigureInput, data: Ranked) -> str:
        """Panels, ties, seeds, then models, training and examples of each encoding."""
        found, ranked = data.scores, data.ranks
        first = next(iter(found.values()))
        count = len(first[0].seeds)
        seeds = 'one seed' if count == 1 else f'{count} seeds, bands from lowest to highest'
        lengths = '; '.join(f'{task} to L = {some[0].longest}' for task, some in found.items())
        lines = [task for task, some in found.items() if any(score.released for score in some)]
        dotted, diamonds, as_there = '', '', ''
        if lines:
            dotted = f'Dotted ({", ".join(lines)}): {released.SOURCE}, means over three seeds. '
        if ranked.as_released:
            diamonds, as_there = f'; diamonds: {released.SOURCE}, on its own 17 tasks', ', as there'
        return (
            f'Above: mean reciprocal rank of the {len(ranked.labels)} encodings by accuracy over '
            'all examples longer than those of training, '
            f'{count} seed{"s" if count > 1 else ""} of each task (white dots: each seed)'
            f'{diamonds}. Equal accuracies are ranked in the order {", ".join(ranked.order)}'
            f'{as_there}. Below: exact match by length, {seeds}; grey: lengths of training, on '
            f'validation examples ({lengths}). {dotted}{captions.models(given, found)}'
        )


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


def _theirs(score: Score) -> str:
    """The released mean in brackets, with its L where that is another one; '' without one."""
    if score.released_beyond is None:
        return ''
    longest = released.longest(score.task)
    where = '' if longest == score.longest else f', L = {longest}'
    return f' ({score.released_beyond:.2f}{where})'
