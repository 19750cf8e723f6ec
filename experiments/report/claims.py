"""Claims of all figures: the paper's words, what was measured, the verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from experiments.board.summaries import VERDICTS
from experiments.report.problems import noted
from experiments.report.workfolder import FigureFolder, WorkFolder, relative

LONGEST = 2000  # characters of a text


@dataclasses.dataclass(frozen=True)
class ClaimRow:
    """headline: the numbers that decide. measured: (path, number as text)."""

    figure: str
    id: str
    number: int | None
    paper: str
    verdict: str
    headline: str
    measured: tuple[tuple[str, str], ...]
    statement: str

    @property
    def names(self) -> tuple[str, ...]:
        return (f'{self.figure}: {self.id}',)

    @property
    def compared(self) -> Any:
        return self.verdict, self.measured, self.statement


def rows(folder: WorkFolder) -> list[ClaimRow]:
    """Claims of every figure's summary, by their number; those without one last."""
    found = [row for figure in folder.figures for row in _of_figure(folder, figure)]
    return sorted(found, key=lambda row: (row.number is None, row.number or 0))


def _of_figure(folder: WorkFolder, figure: FigureFolder) -> list[ClaimRow]:
    made: list[ClaimRow] = []
    with noted(folder.problems, relative(figure.folder / 'summary.json', folder.root)):
        claims = figure.summary.get('claims', [])
        if not isinstance(claims, list):
            raise ValueError(f'claims are {claims!r:.100}; accepted is a list')
        for claim in claims:
            made.append(_row(figure.name, claim))
    return made


def _row(figure: str, claim: dict[str, Any]) -> ClaimRow:
    number = claim['number']
    verdict = str(claim['verdict'])
    if verdict not in VERDICTS:
        raise ValueError(f'verdict is {verdict!r:.100}; accepted: {", ".join(VERDICTS)}')
    if number is not None and type(number) is not int:
        raise ValueError(f'number of a claim is {number!r:.100}; accepted is an integer or null')
    return ClaimRow(
        figure=figure,
        id=str(claim['id']),
        number=number,
        paper=str(claim['paper'])[:LONGEST],
        verdict=verdict,
        headline=str(claim.get('headline', ''))[:LONGEST],
        measured=tuple(flat(claim['measured'])),
        statement=str(claim['statement'])[:LONGEST],
    )


def flat(value: Any, path: str = '') -> Iterator[tuple[str, str]]:
    """(path, text) of the numbers in nested mappings and lists; lists of numbers are one text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f'{path} {key}'.strip())
    elif isinstance(value, list) and any(isinstance(v, list | dict) for v in value):
        for number, inner in enumerate(value):
            yield from flat(inner, f'{path} {number}'.strip())
    elif isinstance(value, list):
        yield path, ', '.join(map(shown, value))[:LONGEST]
    else:
        yield path, shown(value)[:LONGEST]


def shown(value: Any) -> str:
    """A number as people read it; a dash stands for none."""
    if value is None:
        return '\N{EN DASH}'
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:.6g}' if isinstance(value, float) else str(value)
