"""Numbers of claims by size: what changes with larger models and more tokens."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.board.decisions import Decision, Row, rank
from experiments.figures.claims.headline import Number
from experiments.figures.look import mpl, style
from nope.runtime.amounts import amount

# Trained tokens of a figure's models at a size; None where nothing was trained.
Tokens = Callable[[str, str], int | None]

COLUMNS, WIDTH, HEIGHT = 4, 2.9, 2.5  # of panels: number in a row, inches
MOST = 4  # lines of a panel with one figure
MARKS: Mapping[str, dict[str, Any]] = {
    'holds': {'marker': 'o', 'fillstyle': 'full'},
    'does not hold': {'marker': 'o', 'fillstyle': 'none'},
    'undecided': {'marker': 'o', 'fillstyle': 'left'},
    'reading': {'marker': '.'},
}
COLORS = (style.BLUE, style.RED, *style.COLORS[2:])
APART = 0.07  # of the distance of two sizes: between marks of one size


@dataclasses.dataclass(frozen=True)
class Point:
    """A number at one size. tokens: that the models were trained on, None where they were not
    trained here. low, high: 95 % interval of the mean over seeds, of one seed by resamples, and
    both the mean where there is none."""

    size: str
    tokens: int | None
    verdict: str
    seeds: int
    mean: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Course:
    """A number that a figure measures for a claim, at two or more sizes, the smallest first. what:
    in plain words."""

    claim: Row
    figure: str
    what: str
    unit: str
    points: tuple[Point, ...]


def courses(rows: Sequence[Row], tokens: Tokens) -> tuple[Course, ...]:
    """Of every claim the numbers that one figure has at two sizes or more, in the order of the last
    one. Numbers of two sizes are the same where their words and units are: of a claim about several
    cases the one that decides may be another. Those without a mean are left out."""
    found = []
    for row in rows:
        for figure in dict.fromkeys(decision.figure for decision in row.decisions):
            decisions = [d for d in row.decisions if d.figure == figure]
            for number in decisions[-1].numbers:
                found += _course(row, figure, decisions, number, tokens)
    return tuple(found)


def csv_rows(found: Sequence[Course]) -> list[dict[str, Any]]:
    """A row for every point."""
    return [
        {
            'claim': course.claim.id,
            'printed': course.claim.printed,
            'figure': course.figure,
            'number': course.what,
            'unit': course.unit,
            **dataclasses.asdict(point),
        }
        for course in found
        for point in course.points
    ]


@style.styled
def draw(found: Sequence[Course]) -> mpl.Figure:
    """A panel for each claim and unit, with the first number of each figure, or with the first
    numbers of the only one; at least one."""
    panels: dict[tuple[str, str], list[Course]] = {}
    for course in found:
        panels.setdefault((course.claim.id, course.unit), []).append(course)
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    figure = style.new_figure(WIDTH * columns, HEIGHT * lines + 0.5)
    grid = figure.add_gridspec(lines, columns)
    for number, some in enumerate(panels.values()):
        _panel(figure.add_subplot(grid[divmod(number, columns)]), _drawn(some))
    handles = [
        mpl.Line2D([], [], color=style.BLACK, linestyle='none', label=verdict, **look)
        for verdict, look in MARKS.items()
    ]
    interval = mpl.Line2D(
        [], [], color=style.BLACK, linestyle='none', marker='|', markersize=9,
        label='95 % interval over seeds, of one by resamples',
    )  # fmt: skip
    handles.append(interval)
    figure.legend(handles=handles, loc='outside upper center', ncols=min(len(handles), 2 * columns))
    return figure


def _drawn(found: Sequence[Course]) -> Sequence[Course]:
    """Those of a panel that get a line."""
    by_figure = {course.figure: course for course in reversed(found)}
    return list(by_figure.values())[::-1] if len(by_figure) > 1 else found[:MOST]


def _panel(axes: mpl.Axes, found: Sequence[Course]) -> None:
    """Lines by figure or by number against sizes, with the tokens of each; a line has a gap at a
    size where its figure decided by another number."""
    sizes = sorted({point.size for course in found for point in course.points}, key=rank)
    alike = len({course.what for course in found}) == 1
    together = len({course.figure for course in found}) == 1
    shifts = APART * (np.arange(len(found)) - (len(found) - 1) / 2)
    for course, color, shift in zip(found, itertools.cycle(COLORS), shifts, strict=False):
        means = {p.size: p.mean for p in course.points}
        label = course.figure if alike else course.what
        label = label if alike or together else f'{course.figure}: {label}'
        label = '\n'.join(textwrap.wrap(label, 44))
        line = [means.get(size, np.nan) for size in sizes]
        axes.plot(np.arange(len(sizes)) + shift, line, color=color, label=label)
        for p in course.points:
            axes.errorbar(
                [sizes.index(p.size) + shift],
                [p.mean],
                [[p.mean - p.low], [p.high - p.mean]],
                color=color,
                capsize=2 if p.low < p.high else 0,
                **MARKS[p.verdict],
            )
    row = found[0].claim
    axes.set_title('\n'.join(textwrap.wrap(row.short, 34)), fontsize=8)
    printed = f'printed: {row.printed}' if row.printed not in ('', 'ours') else ''
    below = [*textwrap.wrap(found[0].what if alike else '', 46), *textwrap.wrap(printed, 46)]
    axes.set_xlabel('\n'.join(below), fontsize=6.5)
    axes.set_ylabel(found[0].unit)
    axes.set_xlim(-0.4, len(sizes) - 0.6)
    axes.xaxis.set_major_locator(mpl.FixedLocator(range(len(sizes))))
    axes.set_xticklabels([_named(size, found) for size in sizes], fontsize=6.5)
    axes.tick_params(axis='y', labelsize=7)
    if len(found) > 1:
        _legend_above(axes, columns=2 if alike else 1)


def _legend_above(axes: mpl.Axes, columns: int) -> None:
    """The figures or numbers in rows, in room of their own above the lines."""
    _, labels = axes.get_legend_handles_labels()
    rows = -(-sum(1 + label.count('\n') for label in labels) // columns)
    share = min(0.04 + 0.085 * rows, 0.6)  # of the panel's height
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) * share / (1 - share))
    axes.legend(
        fontsize=6, loc='upper center', ncols=columns, handlelength=1.0, labelspacing=0.2,
        frameon=False,
    )  # fmt: skip


def _named(size: str, found: Sequence[Course]) -> str:
    """The size, and the tokens of its models below it: of figures with different ones the range."""
    points = [p for course in found for p in course.points if p.size == size]
    tokens = [p.tokens for p in points if p.tokens is not None]
    said = [amount(n) for n in sorted({min(tokens), max(tokens)})] if tokens else []
    return f'{size}\n{" to ".join(said)} tokens' if said else size


def _course(
    row: Row, figure: str, decisions: Sequence[Decision], last: Number, tokens: Tokens
) -> list[Course]:
    """The number of the largest size and those of the others in its words, where they are one."""
    points = [
        _point(decision, number, tokens(figure, decision.size))
        for decision in decisions
        for number in decision.numbers
        if (number.what, number.unit) == (last.what, last.unit)
    ]
    measured = tuple(point for point in points if point is not None)
    if len(measured) < 2:
        return []
    return [Course(row, figure, last.what, last.unit, measured)]


def _point(decision: Decision, number: Number, tokens: int | None) -> Point | None:
    found, seeds = number.interval, len(number.by_seed)
    if found is None:
        return None
    low, high = (found.low, found.high) if number.bracketed else (found.mean, found.mean)
    return Point(decision.size, tokens, decision.verdict, seeds, found.mean, low, high)
