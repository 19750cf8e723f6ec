"""Board of a work folder: claims that its figures decide, by size, with numbers and intervals."""

from __future__ import annotations

import dataclasses
from typing import Any

from experiments import figure_configs
from experiments.board import Standing, Summary, page, sizes_of, standings
from experiments.report.problems import noted
from experiments.report.workfolder import WorkFolder, relative


@dataclasses.dataclass(frozen=True)
class SizeCell:
    """Verdict on a claim at one size. measured: a line a figure, with its own verdict in front
    where they differ."""

    size: str
    verdict: str
    measured: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class BoardRow:
    """One claim on one text ('' for that of the configs). number: of the paper's eleven, None for
    others. printed: the source's numbers."""

    id: str
    number: int | None
    short: str
    printed: str
    text: str
    cells: tuple[SizeCell, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return (f'{self.id} {self.text}'.strip(),)

    @property
    def compared(self) -> Any:
        return self.cells


def rows(folder: WorkFolder) -> list[BoardRow]:
    """Claims that some figure of the folder measured, the paper's eleven first. Figures of a name
    that no config has are left out, as `nope claims` leaves them out."""
    found: list[Summary] = []
    for figure in folder.figures:
        place = figure_configs.config_of(figure.name)
        if place is not None and figure.summary:
            with noted(folder.problems, relative(figure.folder / 'summary.json', folder.root)):
                found.append(figure_configs.summary(figure.folder, *place))
    sizes = sizes_of(found)
    made = (_row(standing, sizes) for standing in standings(found))
    return [row for row in made if row.cells]


def _row(row: Standing, sizes: tuple[str, ...]) -> BoardRow:
    cells = [
        SizeCell(
            size,
            row.verdict(size),
            tuple(
                f'{d.verdict}, ' * row.mixed(size) + page.said(row.claim.id, d)
                for d in row.at(size)
            ),
        )
        for size in sizes
        if row.at(size)
    ]
    claim = row.claim
    short = f'{claim.short} ({row.text})' if row.text else claim.short
    return BoardRow(claim.id, claim.number, short, claim.printed, row.text, tuple(cells))
