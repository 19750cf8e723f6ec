"""The page: all sections of one work folder or two as one file of HTML."""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib.resources
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import jinja2

from experiments.board.summaries import VERDICTS
from experiments.report import (
    chart,
    claims,
    heads,
    missing,
    pictures,
    provenance,
    ranges,
    retrieval,
    training,
    workfolder,
)
from experiments.report.heads import HeadGrid
from experiments.report.pairs import SIDES, Beside, paired
from experiments.report.ranges import LossRow
from experiments.report.workfolder import WorkFolder


def render(roots: Sequence[pathlib.Path], out: pathlib.Path) -> bytes:
    """The page of one work folder or two. out: the file that its links start from. ValueError for a
    folder that holds nothing."""
    return _text(_view([workfolder.read(root) for root in roots], out))


def _view(folders: Sequence[WorkFolder], out: pathlib.Path) -> dict[str, Any]:
    """Variables of the template."""
    grids = _each(heads.grids, folders)
    figures = [pictures.pictures(f, out) for f in folders]
    heads_on_page = _by_id(grids)
    view: dict[str, Any] = {
        'folders': [(SIDES[i] if len(folders) > 1 else '', f) for i, f in enumerate(folders)],
        'claims': paired(_each(claims.rows, folders)),
        'verdicts': VERDICTS,
        'figures': paired(figures),
        'uris': pictures.embedded(itertools.chain(*figures)),
        'heads': paired(grids),
        'head_ids': {key: name for key, (name, _) in heads_on_page.items()},
        'head_data': {
            name: grid.data | {'others': [heads_on_page[side, slug][0] for slug in grid.others]}
            for (side, _), (name, grid) in heads_on_page.items()
        },
        'losses': [
            _losses(
                'Mean loss by range of positions',
                ranges.range_name,
                _each(ranges.by_range, folders),
            ),
            _losses(
                'Mean loss by length of windows', ranges.times, _each(ranges.by_length, folders)
            ),
        ],
        'runs': paired(_each(training.curves, folders)),
        'chart': chart,
        'maps': paired(_each(retrieval.maps, folders)),
        'origins': paired(_each(provenance.figures, folders)),
        'data': paired(_each(provenance.data, folders)),
        'made_with': paired(_each(provenance.made_with, folders)),
    }
    # What was noted while sections were read is among the folders' own problems by now.
    view['problems'] = [
        (side, problem)
        for side, f in view['folders']
        for problem in sorted({*f.problems, *missing.of_figures(f), *missing.of_plans(f)})
    ]
    return view


def _each(section: Any, folders: Sequence[WorkFolder]) -> list[Any]:
    return [section(folder) for folder in folders]


def _by_id(grids: Sequence[Sequence[HeadGrid]]) -> dict[tuple[str, str], tuple[str, HeadGrid]]:
    """(side, slug) -> id of a grid on the page, and the grid."""
    letters = SIDES if len(grids) > 1 else ('',)
    return {
        (side, grid.slug): (f'heads-{side}{number}', grid)
        for side, found in zip(letters, grids, strict=True)
        for number, grid in enumerate(found)
    }


@dataclasses.dataclass(frozen=True)
class LossTable:
    """columns: (multiple of L, heading)."""

    title: str
    columns: tuple[tuple[float, str], ...]
    rows: list[Beside[LossRow]]


def _losses(title: str, name: Any, sides: list[list[LossRow]]) -> LossTable:
    ends = sorted({end for rows in sides for row in rows for end in row.values})
    return LossTable(title, tuple((end, name(end)) for end in ends), paired(sides))


def _text(view: dict[str, Any]) -> bytes:
    environment = _environment()
    style, script = (_file(name) for name in ('style.css', 'script.js'))
    policy = '; '.join(
        [
            "default-src 'none'",
            'img-src data:',
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    html = environment.get_template('page.html').render(
        view, policy=policy, style=style, script=script
    )
    return html.encode('utf-8', errors='replace')  # names may hold halves of characters


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader('experiments.report', 'templates'),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@functools.cache
def _file(name: str) -> str:
    folder = importlib.resources.files('experiments.report') / 'templates'
    return (folder / name).read_text(encoding='utf-8')


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f'sha256-{base64.b64encode(digest).decode()}'
