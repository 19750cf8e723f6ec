"""The board as a picture: one row a claim, verdicts as signs and in colour.

Measures are in inches, from the upper left corner.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from experiments.board import page
from experiments.board.decisions import DISAGREE, NOT_MEASURED, Row
from experiments.figures.look import mpl, style

TEXT, HEAD = 7.5, 9.0  # points
LINE, PAD, MARGIN, GAP = 0.145, 0.05, 0.2, 0.15
NUMBER, CLAIM, PRINTED, OURS = 0.25, 2.6, 1.55, 4.6  # widths of columns
COLORS = {
    'holds': style.BLUE,
    'does not hold': style.RED,
    DISAGREE: '#7A3E9D',
    'undecided': style.BLACK,
    'reading': style.GREY,
    NOT_MEASURED: style.GREY,
}

Lines = list[tuple[str, str]]  # text and colour


@style.styled
def draw(rows: Sequence[Row], sizes: Sequence[str]) -> mpl.Figure:
    """Columns: number, claim, the numbers printed, ours at each size with the verdict."""
    blocks = [(title, [_cells(r, sizes) for r in members]) for title, members in page.grouped(rows)]
    height = sum(_head() + sum(map(_height, cells)) for _, cells in blocks)
    widths = (NUMBER, CLAIM, PRINTED, *(OURS for _ in sizes))
    edges = [MARGIN + sum(widths[:i]) + GAP * i for i in range(len(widths))]
    size = (edges[-1] + widths[-1] + MARGIN, height + 2 * MARGIN)
    figure = mpl.Figure(figsize=size)
    down = MARGIN
    for title, cells in blocks:
        down = _heading(figure, size, edges, down, title, sizes)
        for row in cells:
            for left, lines in zip(edges, row, strict=True):
                for i, (text, color) in enumerate(lines):
                    _put(figure, size, left, down + PAD + i * LINE, text, TEXT, color=color)
            down += _height(row)
            _rule(figure, size, down, 0.3)
    return figure


def _cells(row: Row, sizes: Sequence[str]) -> list[Lines]:
    return [
        [(str(row.number or ''), style.BLACK)],
        _wrapped(row.short, CLAIM, style.BLACK),
        _wrapped(row.printed, PRINTED, style.GREY),
        *(_ours(row, size) for size in sizes),
    ]


def _ours(row: Row, size: str) -> Lines:
    """The verdict, and below it each figure with its numbers, or the configs that would decide."""
    verdict, decisions = row.verdict(size), row.at(size)
    lines = [(f'{page.MARKS[verdict]}  {verdict}', COLORS[verdict])]
    if not decisions:
        return [(f'{lines[0][0]}; decided by {", ".join(row.configs)}', style.GREY)]
    for decision in decisions:
        mark = f'{page.MARKS[decision.verdict]} ' if row.mixed(size) else ''
        color = COLORS[decision.verdict] if mark else style.BLACK
        lines += _wrapped(f'{mark}{page.said(decision)}', OURS, color)
    return lines


def _wrapped(text: str, width: float, color: str) -> Lines:
    """Lines that are no wider than a column."""
    count = 120
    lines = textwrap.wrap(text, count)
    while any(width_of(line, TEXT) > width for line in lines) and count > 10:
        count -= 2
        lines = textwrap.wrap(text, count)
    return [(line, color) for line in lines]


def _height(row: Sequence[Lines]) -> float:
    return max(map(len, row)) * LINE + 2 * PAD


def _head() -> float:
    return 2 * LINE + 4 * PAD


def _heading(
    figure: mpl.Figure,
    size: tuple[float, float],
    edges: Sequence[float],
    down: float,
    title: str,
    sizes: Sequence[str],
) -> float:
    """Title of a group and of the columns; the place below them."""
    down += 2 * PAD
    _put(figure, size, edges[0], down, title, HEAD, weight='bold')
    names = ('claim', 'printed', *(f'ours at {name}' for name in sizes))
    for left, name in zip(edges[1:], names, strict=True):
        _put(figure, size, left, down + LINE + PAD, name, TEXT, color=style.GREY)
    down += _head() - 2 * PAD
    _rule(figure, size, down, 0.8)
    return down


def _put(
    figure: mpl.Figure,
    size: tuple[float, float],
    left: float,
    down: float,
    text: str,
    points: float,
    **look: Any,
) -> None:
    """A line of text whose upper left corner is at (left, down); without mathematics."""
    place = (left / size[0], 1 - down / size[1])
    figure.text(*place, text, fontsize=points, va='top', parse_math=False, **look)


def _rule(figure: mpl.Figure, size: tuple[float, float], down: float, width: float) -> None:
    x = (MARGIN / size[0], 1 - MARGIN / size[0])
    y = 1 - down / size[1]
    line = mpl.Line2D(x, (y, y), color=style.GREY, linewidth=width, transform=figure.transFigure)
    figure.add_artist(line)


def width_of(text: str, size: float, weight: str = 'normal') -> float:
    """Inches that a line of text takes."""
    font = mpl.FontProperties(size=size, weight=weight)
    return mpl.text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72
