"""Table as data: columns, groups, rows and footnotes, before it is drawn or written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.figures.read.tables.paper import Printed


@dataclasses.dataclass(frozen=True)
class Cell:
    """One number beside the paper's.

    - ours: mean over runs; None only with the `reason` why it is missing.
    - spread: standard deviation over runs, None with one. runs: how many.
    - paper: a number, a text as '>1000', or None.
    - facts: further columns of the CSV.
    """

    ours: float | None = None
    paper: Printed = None
    reason: str = ''
    spread: float | None = None
    runs: int = 0
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.ours is None) != bool(self.reason):
            raise ValueError(
                f'a cell has a value or the reason why it has none, got {self.ours!r} and '
                f'{self.reason!r}'
            )

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, None unless both are numbers."""
        if self.ours is None or self.paper is None or isinstance(self.paper, str):
            return None
        return self.ours - self.paper


@dataclasses.dataclass(frozen=True)
class Column:
    """key: its name in the CSV. group: what it stands under together with its neighbours.
    comparable: whether ours and the paper's are in one unit."""

    key: str
    label: str
    group: str = ''
    decimals: int = 1
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    comparable: bool = True

    def difference(self, cell: Cell) -> float | None:
        """Ours less the paper's, None unless both are numbers in one unit."""
        return cell.difference if self.comparable else None


@dataclasses.dataclass(frozen=True)
class TableRow:
    """shown: texts in front of the cells, one for each of the table's headings. facts: further
    columns of the CSV."""

    label: str
    cells: tuple[Cell, ...]
    shown: tuple[str, ...] = ()
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class RowGroup:
    title: str
    rows: tuple[TableRow, ...]


@dataclasses.dataclass(frozen=True)
class Table:
    """headings: of what stands between the labels and the cells."""

    columns: tuple[Column, ...]
    groups: tuple[RowGroup, ...]
    headings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            for what, found, wanted in (
                ('cells', row.cells, self.columns),
                ('shown', row.shown, self.headings),
            ):
                if len(found) != len(wanted):
                    raise ValueError(
                        f'row {row.label!r}: {what} must be {len(wanted)}, got {len(found)}'
                    )

    @property
    def rows(self) -> tuple[TableRow, ...]:
        return tuple(row for group in self.groups for row in group.rows)

    @property
    def cells(self) -> Iterator[Cell]:
        return (cell for row in self.rows for cell in row.cells)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons of missing cells, each once; its place, from 1, is the footnote's number."""
        return tuple(dict.fromkeys(cell.reason for cell in self.cells if cell.reason))


def measured(values: np.ndarray, paper: Printed, facts: Mapping[str, Any] | None = None) -> Cell:
    """The cell of one value a run, [S]."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(float(np.mean(values)), paper, '', spread, len(values), facts or {})


def grouped(
    rows: Iterator[tuple[str, TableRow]] | list[tuple[str, TableRow]],
) -> tuple[RowGroup, ...]:
    """Rows by the title that stands before each, titles in the order of their first row."""
    groups: dict[str, list[TableRow]] = {}
    for title, row in rows:
        groups.setdefault(title, []).append(row)
    return tuple(RowGroup(title, tuple(found)) for title, found in groups.items())


def tidy(table: Table) -> list[dict[str, Any]]:
    """One row for each cell, all with the same keys."""
    return [
        {
            'row': row.label,
            'group': group.title,
            'column': column.key,
            'ours': cell.ours,
            'spread': cell.spread,
            'runs': cell.runs,
            'paper': cell.paper,
            'difference': column.difference(cell),
            'missing': cell.reason,
            **column.facts,
            **row.facts,
            **cell.facts,
        }
        for group in table.groups
        for row in group.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]


def number(value: float, decimals: int, sign: str = '') -> str:
    """Number with separators and few digits: '12.3', '1,234', '2.3e+06'. sign: '+' for
    differences."""
    value = round(value, decimals) + 0.0  # no -0.0
    if abs(value) >= 10**6:
        return f'{value:{sign}.1e}'
    return f'{value:{sign},.{0 if abs(value) >= 10**3 else decimals}f}'


def paper_text(cell: Cell, column: Column) -> str:
    """'' where the paper has none."""
    if cell.paper is None or isinstance(cell.paper, str):
        return cell.paper or ''
    return number(cell.paper, 0 if isinstance(cell.paper, int) else min(column.decimals, 1))
