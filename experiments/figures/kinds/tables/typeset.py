"""A table as a picture: rules above, below and between groups, ours in black, the paper's below
it in grey. All measures are in inches, from the upper left corner."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from experiments.figures.look import mpl, style
from experiments.figures.read.tables.table import Cell, Column, Row, Table, number, paper_text

OURS, SMALL, NOTE = 9.0, 7.5, 7.5  # points
MARGIN = 0.15
LINE = 0.165  # from one line of text to the next
ROW_PAD, GROUP_PAD = 0.09, 0.07
GAP = 0.14  # between columns
INDENT = 0.1
RULES = {'heavy': 1.1, 'middle': 0.7, 'light': 0.4}  # points
MISSING = '\N{EN DASH}'


def draw(table: Table) -> mpl.Figure:
    page = _Page(_Layout.of(table))
    _header(page, table)
    for i, group in enumerate(table.groups):
        page.rule('middle' if i == 0 else 'light')
        page.down(GROUP_PAD)
        if group.title:
            page.text(0, group.title, OURS, weight='bold')
            page.down(LINE + GROUP_PAD)
        for row in group.rows:
            _row(page, table, row, INDENT if group.title else 0.0)
    page.rule('heavy')
    _notes(page, table)
    return page.figure()


def width_of(text: str, size: float, weight: str = 'normal') -> float:
    """Inches that a line of text takes."""
    font = mpl.FontProperties(size=size, weight=weight)
    return mpl.text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


@dataclasses.dataclass(frozen=True)
class _Layout:
    """width: of the table. headings, columns: left and right edge of every column in front of the
    cells, and of every column of cells."""

    width: float
    headings: tuple[tuple[float, float], ...]
    columns: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, table: Table) -> _Layout:
        titles = [width_of(g.title, OURS, 'bold') for g in table.groups]
        headings = [
            max(width_of(text, OURS) for text in (heading, *(row.shown[i] for row in table.rows)))
            for i, heading in enumerate(table.headings)
        ]
        columns = _shared_widths(
            table,
            [
                max(
                    width_of(column.label, OURS),
                    *(_cell_width(row.cells[i], column) for row in table.rows),
                )
                for i, column in enumerate(table.columns)
            ],
        )
        edges, at = [], max(INDENT + width_of(row.label, OURS) for row in table.rows)
        for width in (*headings, *columns):
            edges.append((at + GAP, at + GAP + width))
            at += GAP + width
        count = len(headings)
        return cls(max(at, *titles), tuple(edges[:count]), tuple(edges[count:]))


def _shared_widths(table: Table, widths: Sequence[float]) -> list[float]:
    """Columns of a group are equally wide, and together at least as wide as its title."""
    shared = list(widths)
    for title, first, last in _spans(table.columns):
        count = last - first + 1
        least = (width_of(title, OURS) - (count - 1) * GAP) / count
        width = max(least, *widths[first : last + 1])
        shared[first : last + 1] = [width] * count
    return shared


def _spans(columns: Sequence[Column]) -> list[tuple[str, int, int]]:
    """Neighbours of one group: its title, the first and the last column."""
    spans: list[tuple[str, int, int]] = []
    for i, column in enumerate(columns):
        if spans and column.group and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1], i)
        else:
            spans.append((column.group, i, i))
    return spans


class _Page:
    """Collects what is drawn from the top down; its height is known at the end."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout
        self._at = MARGIN
        self._drawn: list[Callable[[mpl.Figure, float], None]] = []

    def down(self, inches: float) -> None:
        self._at += inches

    def text(self, x: float, text: str, size: float, below: float = 0.0, **look: Any) -> None:
        """One line whose top is `below` the present place, `x` inches from the left."""
        top = self._at + below + 0.125  # the base line of 9 points

        def add(figure: mpl.Figure, height: float) -> None:
            transform = figure.dpi_scale_trans
            look.setdefault('va', 'baseline')
            figure.text(MARGIN + x, height - top, text, size=size, transform=transform, **look)

        self._drawn.append(add)

    def rule(self, kind: str, left: float = 0.0, right: float | None = None) -> None:
        at = self._at
        end = self.layout.width if right is None else right

        def add(figure: mpl.Figure, height: float) -> None:
            figure.add_artist(
                mpl.Line2D(
                    [MARGIN + left, MARGIN + end],
                    [height - at, height - at],
                    transform=figure.dpi_scale_trans,
                    color=style.BLACK,
                    linewidth=RULES[kind],
                )
            )

        self._drawn.append(add)

    def figure(self) -> mpl.Figure:
        height = self._at + MARGIN
        figure = mpl.Figure(figsize=(self.layout.width + 2 * MARGIN, height))
        for add in self._drawn:
            add(figure, height)
        return figure


def _header(page: _Page, table: Table) -> None:
    page.rule('heavy')
    page.down(GROUP_PAD)
    titled = [span for span in _spans(table.columns) if span[0]]
    for title, first, last in titled:
        left, right = page.layout.columns[first][0], page.layout.columns[last][1]
        page.text((left + right) / 2, title, OURS, ha='center')
    if titled:
        page.down(LINE + 0.03)
        for _, first, last in titled:
            page.rule('light', page.layout.columns[first][0], page.layout.columns[last][1])
        page.down(0.04)
    for (_, right), heading in zip(page.layout.headings, table.headings, strict=True):
        page.text(right, heading, OURS, ha='right')
    for (left, right), column in zip(page.layout.columns, table.columns, strict=True):
        page.text((left + right) / 2, column.label, OURS, ha='center')
    page.down(LINE + GROUP_PAD)


def _row(page: _Page, table: Table, row: Row, indent: float) -> None:
    page.text(indent, row.label, OURS)
    for (_, right), text in zip(page.layout.headings, row.shown, strict=True):
        page.text(right, text, OURS, ha='right')
    for edges, column, cell in zip(page.layout.columns, table.columns, row.cells, strict=True):
        _cell(page, table, sum(edges) / 2, column, cell)
    both = any(cell.paper is not None for cell in row.cells)
    page.down((2 if both else 1) * LINE + ROW_PAD)


def _cell(page: _Page, table: Table, centre: float, column: Column, cell: Cell) -> None:
    paper = paper_text(cell, column)
    if paper:
        page.text(centre, paper, SMALL, below=LINE - 0.01, ha='center', color=style.GREY)
    if cell.ours is None:
        mark = str(table.reasons.index(cell.reason) + 1)
        page.text(centre, MISSING, OURS, ha='center')
        page.text(centre + width_of(MISSING, OURS) / 2 + 0.02, mark, 6, below=-0.04)
        return
    ours, spread = _ours(cell, column)
    left = centre - (width_of(ours, OURS) + width_of(spread, SMALL)) / 2
    page.text(left, ours, OURS)
    page.text(left + width_of(ours, OURS), spread, SMALL)


def _ours(cell: Cell, column: Column) -> tuple[str, str]:
    """The mean, and what follows it in smaller type."""
    assert cell.ours is not None
    spread = '' if cell.spread is None else f' ±{number(cell.spread, column.decimals)}'
    return number(cell.ours, column.decimals), spread


def _cell_width(cell: Cell, column: Column) -> float:
    paper = width_of(paper_text(cell, column), SMALL)
    if cell.ours is None:
        ours = width_of(MISSING, OURS) + 2 * width_of('00', SMALL)
    else:
        mean, spread = _ours(cell, column)
        ours = width_of(mean, OURS) + width_of(spread, SMALL)
    return max(paper, ours) + 0.04  # on a raster letters are a little wider than their outlines


def _notes(page: _Page, table: Table) -> None:
    page.down(GROUP_PAD)
    notes = [f'{i}  missing: {reason}' for i, reason in enumerate(table.reasons, start=1)]
    for note in (_legend(table), *notes):
        for line in _wrapped(note, page.layout.width):
            page.text(0, line, NOTE, color=style.GREY)
            page.down(LINE - 0.02)


def _legend(table: Table) -> str:
    several = any(cell.spread is not None for cell in table.cells)
    spread = ', ± standard deviation over runs' if several else ''
    return f"Black: ours{spread}. Grey: the paper's."


def _wrapped(text: str, width: float) -> list[str]:
    letters = int(len(text) * width / width_of(text, NOTE))
    return textwrap.wrap(text, max(letters - 4, 20))
