"""Numbers of claims by size: what changes with larger models and more tokens."""

from __future__ import annotations

import dataclasses
import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.board import page, words
from experiments.board.decisions import Decision, Standing, asked, rank
from experiments.figures import by_kind
from experiments.figures.claims.claim import Claim
from experiments.figures.claims.headline import Number
from experiments.figures.look import mpl, style
from nope.runtime.amounts import amount

# Trained tokens of a figure's models at a size; None where nothing was trained.
Tokens = Callable[[str, str], int | None]

COLUMNS, WIDTH, HEIGHT = 2, 3.6, 2.8  # of panels: number in a row, inches
# A verdict fills its mark, whose shape says whether one seed stands behind it.
FILLS: Mapping[str, dict[str, Any]] = {
    'holds': {'fillstyle': 'full'},
    'does not hold': {'fillstyle': 'none'},
    'undecided': {'fillstyle': 'left', 'markerfacecoloralt': 'white'},
    'reading': {'fillstyle': 'top', 'markerfacecoloralt': 'white'},
}
SEVERAL: Mapping[str, Any] = {'marker': 'o', 'markersize': 7}
ONE: Mapping[str, Any] = {'marker': 's', 'markersize': 7}
COLORS = (style.BLUE, style.RED, *style.COLORS[2:])
APART = 0.07  # of the distance of two sizes: between marks of one size


@dataclasses.dataclass(frozen=True)
class Point:
    """A number at one size. The models were trained on `tokens`, None for those of others. Low and
    high are its 95 % interval over seeds or resamples, and both the mean without one."""

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

    claim: Claim
    figure: str
    what: str
    unit: str
    points: tuple[Point, ...]


def courses(board: Sequence[Standing], tokens: Tokens) -> tuple[Course, ...]:
    """Of every claim the numbers that one figure has at two sizes or more, in the order of the last
    one. Numbers of two sizes are the same where their words and units are: of a claim about several
    cases the one that decides may be another. Those without a mean are left out."""
    found = []
    for standing in board:
        for figure in dict.fromkeys(d.figure for d in standing.decisions):
            decisions = [d for d in standing.decisions if d.figure == figure]
            for number in decisions[-1].numbers:
                found += _course(standing.claim, figure, decisions, number, tokens)
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


def draw(found: Sequence[Course]) -> mpl.Figure:
    """A panel for each of `page.HEADLINES` that has a course, else for the first claims that have
    one; in it the first number of each figure. At least one course."""
    panels: dict[str, list[Course]] = {}
    for course in found:
        panels.setdefault(course.claim.id, []).append(course)
    chosen = [name for name in page.HEADLINES if name in panels] or list(panels)[
        : len(page.HEADLINES)
    ]
    columns = min(COLUMNS, len(chosen))
    lines = -(-len(chosen) // columns)
    with style.house():
        figure = style.new_figure(WIDTH * columns, HEIGHT * lines + 0.5)
        figure.set_layout_engine('constrained', w_pad=0.08, h_pad=0.08)
        grid = figure.add_gridspec(lines, columns)
        for number, name in enumerate(chosen):
            _panel(figure.add_subplot(grid[divmod(number, columns)]), panels[name])
        drawn = {p.verdict for name in chosen for course in panels[name] for p in course.points}
        handles = [
            mpl.Line2D([], [], color=style.BLACK, linestyle='none', label=label, **look)
            for label, look in (
                *(
                    (verdict, {**SEVERAL, **fill})
                    for verdict, fill in FILLS.items()
                    if verdict in drawn
                ),
                ('one seed', {**ONE, **FILLS['does not hold']}),
            )
        ]
        bar = mpl.Line2D([], [], color=style.BLACK, linestyle='none', marker='|', markersize=9)
        bar.set_label('95 % interval')
        handles.append(bar)
        handles.append(mpl.Line2D([], [], color=style.BLACK, linestyle='--', label='limit'))
        figure.legend(
            handles=handles, loc='outside upper center', ncols=min(len(handles), 2 * columns)
        )
        return figure


def _panel(axes: mpl.Axes, found: Sequence[Course]) -> None:
    """A line for each figure against sizes; it has a gap at a size where the figure decided by
    another number."""
    claim, unit = found[0].claim, found[0].unit
    by_figure = {c.figure: c for c in reversed(found) if c.unit == unit}
    drawn = list(reversed(by_figure.values()))
    sizes = sorted({point.size for course in drawn for point in course.points}, key=rank)
    shifts = APART * (np.arange(len(drawn)) - (len(drawn) - 1) / 2)
    for course, color, shift in zip(drawn, itertools.cycle(COLORS), shifts, strict=False):
        means = {p.size: p.mean for p in course.points}
        line = [means.get(size, np.nan) for size in sizes]
        label = course.figure + asked(course.claim.id, course.figure)
        axes.plot(np.arange(len(sizes)) + shift, line, color=color, label=label)
        for p in course.points:
            place, ends = sizes.index(p.size) + shift, [[p.mean - p.low], [p.high - p.mean]]
            caps = 2 if p.low < p.high else 0
            look = {**(SEVERAL if p.seeds > 1 else ONE), **FILLS[p.verdict]}
            axes.errorbar([place], [p.mean], ends, color=color, capsize=caps, **look)
    for limit in by_kind.limits(claim.id, unit):
        axes.axhline(limit, color=style.BLACK, linestyle='--', linewidth=0.8)
    axes.set_title('\n'.join(textwrap.wrap(claim.short, 34)), fontsize=9)
    what = f'{words.plain(drawn[0].what)}, {unit}'.rstrip(', ')
    if len({course.what for course in drawn}) > 1:
        what = f'{drawn[0].figure}: {what}'  # other figures measure the claim in their own way
    axes.set_ylabel('\n'.join(textwrap.wrap(what, 38)), fontsize=7)
    axes.set_xlim(-0.4, len(sizes) - 0.6)
    axes.xaxis.set_major_locator(mpl.FixedLocator(range(len(sizes))))
    axes.set_xticklabels([_named(size, drawn) for size in sizes], fontsize=7)
    axes.tick_params(axis='y', labelsize=7)
    axes.legend(fontsize=6.5, handlelength=1.2, frameon=False)


def _named(size: str, found: Sequence[Course]) -> str:
    """The size, and the tokens of its models below it: of figures with different ones the range."""
    points = [p for course in found for p in course.points if p.size == size]
    tokens = [p.tokens for p in points if p.tokens is not None]
    said = [amount(n) for n in sorted({min(tokens), max(tokens)})] if tokens else []
    return f'{size}\n{" to ".join(said)} tokens' if said else size


def _course(
    claim: Claim, figure: str, decisions: Sequence[Decision], last: Number, tokens: Tokens
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
    return [Course(claim, figure, last.what, last.unit, measured)]


def _point(decision: Decision, number: Number, tokens: int | None) -> Point | None:
    found, seeds = number.interval, len(number.by_seed)
    if found is None:
        return None
    low, high = (found.low, found.high) if number.bracketed else (found.mean, found.mean)
    return Point(decision.size, tokens, decision.verdict, seeds, found.mean, low, high)
