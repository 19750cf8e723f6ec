"""Scratchpads on synthetic tasks: ranks of their formats, and accuracies by format and encoding."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import ABOVE, OVER_SEEDS, Bound
from experiments.figures.given import FigureInput
from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read import scratchpads
from experiments.figures.read.encoding_tasks import released
from experiments.figures.read.encoding_tasks.ranks import ALIKE
from experiments.figures.read.scratchpads import FULL, NONE, Bars, FormatScore, by_encoding
from experiments.figures.roles import Undecided

ADDITION = 'addition'
LEADING, TRAILING = ('NoPE', 'T5'), ('ALiBi', 'APE', 'RoPE')
RANK = CLAIMS['unpadded_best'].thresholds['rank']

RELEASED: dict[str, Any] = accuracy_axes.DIAMOND | {'markerfacecolor': 'white'}
INSIDE: dict[str, Any] = {'linewidth': 1.4, 'linestyle': '-'}
REASONED: dict[str, Any] = {
    'marker': 'x',
    'markersize': 5,
    'markeredgecolor': style.BLACK,
    'linestyle': 'none',
}
WIDTH = 0.8  # of a group of bars

Found = Mapping[str, Bars]  # by task


def _addition(found: Found, *wanted: str) -> tuple[Bars, list[int]]:
    """Bars of addition and the indices of the formats wanted. Undecided without one."""
    if ADDITION not in found:
        raise Undecided(f'the task {ADDITION!r} was not measured')
    bars = found[ADDITION]
    missing = [name for name in wanted if name not in bars.formats]
    if missing:
        raise Undecided(f'{ADDITION} was not measured with the format {missing[0]!r}')
    return bars, [bars.formats.index(name) for name in wanted]


def _best(found: Found) -> Measured:
    """Verdict on the ranks of no scratchpad, with equal accuracies sharing ranks and with those
    that are alike doing so."""

    def ranked(alike: float) -> Measured:
        margins = {}
        for task, bars in found.items():
            none = bars.at(NONE)
            if task == ADDITION or none is None:
                continue
            ranks = bars.reciprocal(alike).mean(axis=1)  # [F, S]
            for f, name in enumerate(bars.formats):
                if f != none:
                    margins[f'none - {name} on {task}'] = ranks[none] - ranks[f]
        if not margins:
            raise Undecided('no task but addition was measured with and without scratchpad')
        what, bound = 'least lead in mean reciprocal rank', Bound(ABOVE, 0, RANK)
        return Every[Found](lambda _: margins, bound, what, '', several=True)(found)

    (measured, first, numbers), (_, shared, _) = ranked(0.0), ranked(ALIKE)
    return measured, first if first == shared else None, numbers


def _helps(found: Found) -> dict[str, np.ndarray]:
    bars, (none, full) = _addition(found, NONE, FULL)
    gains = 100 * (bars.beyond[full] - bars.beyond[none])  # [E, S]
    named = zip(bars.paper, gains, strict=True)
    return {f'full - none with {paper}': gain for paper, gain in named if paper}


def _matters(found: Found) -> dict[str, np.ndarray]:
    """The best format less the worst one, by means over seeds."""
    spreads = {}
    for task, bars in found.items():
        padded = [f for f, name in enumerate(bars.formats) if name != NONE]
        if len(padded) < 2:
            continue
        beyond = 100 * bars.beyond[padded].mean(axis=1)  # [F, S]
        order = np.argsort(beyond.mean(axis=1))
        worst, best = (bars.formats[padded[i]] for i in (order[0], order[-1]))
        spreads[f'{best} - {worst} on {task}'] = beyond[order[-1]] - beyond[order[0]]
    return spreads


def _lead(found: Found) -> dict[str, np.ndarray]:
    bars, (full,) = _addition(found, FULL)
    margins = {}
    for first, other in itertools.product(LEADING, TRAILING):
        a, b = bars.encoding(first), bars.encoding(other)
        if a is None or b is None:
            raise Undecided(f'no curve is of the encoding {(first if a is None else other)!r}')
        margins[f'{first} - {other}'] = 100 * (bars.beyond[full, a] - bars.beyond[full, b])
    return margins


def _beyond(
    find: Callable[[Found], dict[str, np.ndarray]], bound: Bound, what: str = 'least lead in'
) -> Every[Found]:
    return Every(find, bound, f'{what} accuracy beyond L', 'points', several=True)


RULES: tuple[Rule[Found], ...] = (
    Rule(
        'unpadded_best',
        'On every task of the figure but addition the mean reciprocal rank of no scratchpad among '
        'the formats, by accuracy beyond L with each encoding, is above that of each other format. '
        f'Equal accuracies share ranks; where those that differ by at most {ALIKE} do so and that '
        'says otherwise, nothing is decided. A difference of at most '
        f'{RANK} decides nothing, and {OVER_SEEDS}.',
        _best,
    ),
    Rule(
        'pad_helps_addition',
        'Accuracy beyond L on addition with a full scratchpad less that without, with each '
        'encoding of the paper that the figure has',
        _beyond(_helps, Bound(ABOVE, 0, 'points')),
    ),
    Rule(
        'pad_format_matters',
        'Accuracy beyond L, mean over encodings, of the best format of scratchpad less that of the '
        'worst, on every task of the figure',
        _beyond(_matters, Bound(ABOVE, 'points'), 'least spread of'),
    ),
    Rule(
        'padded_encodings',
        'Accuracy beyond L on addition with a full scratchpad, of NoPE and of T5 less that of '
        'ALiBi, APE and RoPE',
        _beyond(_lead, Bound(ABOVE, 0, 'points')),
    ),
)


@kind('scratchpad_bars')
class ScratchpadBarsFigure(EncodingFigure[Found]):
    """Options as of `EncodingFigure`: one encoding on one task with one format of scratchpad each,
    as the records say. Every format of a task has the same encodings."""

    FACTS = ('task', 'scratchpad')
    RULES = RULES

    def read(self, given: FigureInput) -> Found:
        return scratchpads.read(given)

    def picture(self, given: FigureInput, found: Found) -> mpl.Figure:
        labels = scratchpads.all_labels(found.values())
        names = scratchpads.all_formats(found.values())
        colors = style.colors_of(labels)
        figure = style.new_figure(11.0, 5.8 + 2.6 * len(found))
        grid = figure.add_gridspec(2 + len(found), 1)
        _draw_ranks(figure.add_subplot(grid[0]), found, names)
        _draw_ranks_by_encoding(figure.add_subplot(grid[1]), found, names, labels)
        handles: list[Any] = [
            mpl.Line2D(
                [], [], color=_color(f, len(names)), linewidth=5, label=scratchpads.words(name)
            )
            for f, name in enumerate(names)
        ]
        figure.legend(handles=handles, loc='outside upper center', ncols=len(names))
        for number, some in enumerate(found.values(), 2):
            _draw_accuracies(figure.add_subplot(grid[number]), some, colors)
        handles = [
            mpl.Line2D([], [], color=color, linewidth=5, label=label)
            for label, color in colors.items()
        ]
        handles += [
            mpl.Line2D([], [], label='inside L', color=style.GREY, **INSIDE),
            mpl.Line2D([], [], label='scratchpad right in every step, beyond L', **REASONED),
            mpl.Line2D([], [], label=released.SOURCE, **RELEASED),
        ]
        figure.legend(handles=handles, loc='outside lower center', ncols=4)
        return figure

    def rows(self, given: FigureInput, found: Found) -> list[dict[str, Any]]:
        """One row a record: accuracies, what its scratchpads were like beyond L, its rank."""
        return [
            {
                'task': task,
                'format': name,
                'label': cell.score.label,
                'seed': seed,
                'longest': cell.score.longest,
                'accuracy_inside': float(cell.score.inside[s]),
                'accuracy_beyond': float(cell.score.beyond[s]),
                'parsed_beyond': None if cell.parsed is None else float(cell.parsed[s]),
                'reasoned_beyond': None if cell.reasoned is None else float(cell.reasoned[s]),
                'reciprocal_rank': float(bars.reciprocal()[f, e, s]),
                'released_beyond': _mean(released.with_format(task, cell.score.paper, name)),
                'record': cell.score.names[s],
            }
            for task, bars in found.items()
            for f, name in enumerate(bars.formats)
            for e, cell in enumerate(bars.cells[f])
            for s, seed in enumerate(bars.seeds)
        ]

    def caption(self, given: FigureInput, found: Found) -> str:
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

    def markdown(self, given: FigureInput, found: Found) -> str:
        """Of every task: mean reciprocal rank of the formats, and accuracies beyond L of each seed;
        then the ranks by encoding."""
        parts = []
        for bars in found.values():
            rows = [
                [
                    scratchpads.words(name),
                    f'{bars.reciprocal()[f].mean():.2f}',
                    *(_said(cell, bars.task) for cell in bars.cells[f]),
                ]
                for f, name in enumerate(bars.formats)
            ]
            parts.append(
                f'{bars.task}, L = {bars.cells[0][0].score.longest}: mean reciprocal rank; '
                'accuracy beyond L of each seed (inside L; scratchpads right beyond L; '
                'released):\n\n' + table_of(['', 'rank', *bars.labels], rows)
            )
        labels, by_format = scratchpads.all_labels(found.values()), []
        for name in scratchpads.all_formats(found.values()):
            means = [_mean(by_encoding(found.values(), label, name)) for label in labels]
            by_format.append(
                [scratchpads.words(name), *('-' if x is None else f'{x:.2f}' for x in means)]
            )
        title = (
            'Mean reciprocal rank of the formats by encoding, over the tasks that have both:\n\n'
        )
        return '\n'.join([*parts, title + table_of(['', *labels], by_format)])


def _draw_ranks(axes: mpl.Axes, found: Found, names: Sequence[str]) -> None:
    """Mean reciprocal rank of every format on each task, seeds as dots. The paper ranks eight
    formats; its rank is a diamond beside as many."""
    for place, (task, bars) in enumerate(found.items()):
        for f, name in enumerate(names):
            index = bars.at(name)
            if index is None:
                continue
            at = _bar(axes, place, f, len(names), bars.reciprocal()[index].mean(axis=0))
            paper = released.UNPADDED_MRR.get(task) if name == NONE else None
            if paper is not None and scratchpads.complete(bars.formats):
                axes.plot(at, paper, **RELEASED)
    _finish_ranks(axes, list(found))


def _draw_ranks_by_encoding(
    axes: mpl.Axes, found: Found, names: Sequence[str], labels: Sequence[str]
) -> None:
    """Mean reciprocal rank of every format with each encoding, over the tasks that have both, seeds
    as dots (Figure F.8)."""
    for place, label in enumerate(labels):
        for f, name in enumerate(names):
            some = by_encoding(found.values(), label, name)
            if some is not None:
                _bar(axes, place, f, len(names), some)
    tasks = [sum(label in bars.labels for bars in found.values()) for label in labels]
    _finish_ranks(
        axes,
        [
            f'{label} ({n} task{"s" if n > 1 else ""})'
            for label, n in zip(labels, tasks, strict=True)
        ],
    )


def _bar(axes: mpl.Axes, place: int, f: int, count: int, by_seed: np.ndarray) -> float:
    """Draws a bar of the format f of `count`, and its seeds, in a group; returns where."""
    width = WIDTH / count
    at = place + (f - (count - 1) / 2) * width
    axes.bar(at, by_seed.mean(), 0.92 * width, color=_color(f, count))
    axes.scatter([at] * len(by_seed), by_seed, **accuracy_axes.SEEDS)
    return at


def _finish_ranks(axes: mpl.Axes, groups: Sequence[str]) -> None:
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylim(0, 1.05)
    axes.set_ylabel('mean reciprocal rank')
    axes.grid(False, axis='x')


def _draw_accuracies(axes: mpl.Axes, bars: Bars, colors: Mapping[str, str]) -> None:
    """Exact match beyond L of every format and encoding, seeds as dots, released ones as diamonds.
    A line is the accuracy inside L, a cross the share of right scratchpads beyond L. colors: by
    label."""
    count = len(bars.labels)
    width = WIDTH / count
    for f, row in enumerate(bars.cells):
        for e, cell in enumerate(row):
            at = f + (e - (count - 1) / 2) * width
            beyond = cell.score.beyond
            axes.bar(at, beyond.mean(), 0.92 * width, color=colors[cell.score.label])
            axes.scatter([at] * len(beyond), beyond, **accuracy_axes.SEEDS)
            ends = [at - 0.4 * width, at + 0.4 * width]
            color = colors[cell.score.label]
            axes.plot(ends, [cell.score.inside.mean()] * 2, color=color, **INSIDE)
            if cell.reasoned is not None:
                axes.plot(at, cell.reasoned.mean(), zorder=4, **REASONED)
            paper = released.with_format(bars.task, cell.score.paper, cell.format)
            if paper is not None:
                axes.plot(at, paper.mean(), **RELEASED)
    axes.set_xticks(range(len(bars.formats)), [scratchpads.words(name) for name in bars.formats])
    axes.set_ylim(-0.03, 1.05)
    axes.set_title(f'{bars.task}, L = {bars.cells[0][0].score.longest}')
    axes.set_ylabel('exact match')
    axes.grid(False, axis='x')


def _color(index: int, count: int) -> Any:
    """Colours of formats, apart from those of encodings."""
    return mpl.colormaps['viridis'](np.linspace(0.1, 0.9, count))[index]


def _said(cell: FormatScore, task: str) -> str:
    ours = ' / '.join(f'{x:.3f}' for x in cell.score.beyond)
    reasoned = '-' if cell.reasoned is None else f'{cell.reasoned.mean():.2f}'
    theirs = _mean(released.with_format(task, cell.score.paper, cell.format))
    known = '-' if theirs is None else f'{theirs:.2f}'
    return f'{ours} ({cell.score.inside.mean():.2f}; {reasoned}; {known})'


def _mean(values: np.ndarray | None) -> float | None:
    return None if values is None else float(values.mean())
