"""Missing and stale parts of a work folder: records, pieces of plans, drawings."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from experiments import pieces
from experiments.pieces import Piece
from experiments.report.problems import Problem, noted
from experiments.report.workfolder import FigureFolder, WorkFolder, relative

MOST = 100  # rows of pieces on a page
LONGEST = 500  # characters of a reason
FEW = 3  # of the records that a piece is for


def of_figures(folder: WorkFolder) -> list[Problem]:
    """Figures that do not fit their records, which are gone or newer. What was found as the folder
    was read is in its own `problems`."""
    readable = {relative(r.folder, folder.root): r.folder for r in folder.recordings}
    return [p for figure in folder.figures for p in _of_figure(folder, figure, readable)]


def _of_figure(
    folder: WorkFolder, figure: FigureFolder, readable: Mapping[str, pathlib.Path]
) -> list[Problem]:
    where = relative(figure.folder, folder.root)
    problems = []
    summary = figure.folder / 'summary.json'  # the last file of a drawing
    drawn = summary.stat().st_mtime_ns if summary.exists() else None
    if drawn is None:
        problems.append(Problem('missing', f'{where}/summary.json', 'not there: no claims'))
    for name, path in figure.records.items():
        if path not in readable:
            gone = not (folder.root / path).exists()
            state = 'gone' if gone else 'not readable here'
            what = f'its records of {name!r} ({path}) are {state}'
            problems.append(Problem('missing' if gone else 'damaged', where, what))
        elif drawn and (readable[path] / 'records.json').stat().st_mtime_ns > drawn:
            what = f'its records of {name!r} ({path}) are newer than the figure'
            problems.append(Problem('stale', where, what))
    return problems


def of_plans(folder: WorkFolder) -> list[Problem]:
    """Pieces of plans that failed or are not there, and figures that are not drawn. Those that were
    begun and did not fail are left to the sections that call them unfinished."""
    problems: list[Problem] = []
    users: dict[Problem, list[str]] = {}
    for name in pieces.names(folder.root):
        with noted(problems, f'{pieces.ROOM}/{name}.json'):
            listed = pieces.read(folder.root, name)
            done = {p.folder for p in listed if (folder.root / p.folder / p.finished).exists()}
            unmade = pieces.asked([piece for piece in listed if piece.folder not in done])
            problems += _not_drawn(folder.root, name, unmade)
            for row, piece in _rows(folder.root, unmade, done, problems):
                users.setdefault(row, []).extend(f'{name}: {user}' for user in piece.used_by)
    told = [row._replace(what=f'{row.what} ({_some(users[row])})') for row in sorted(users)]
    if len(told) > MOST:
        what = f'{len(told) - MOST} more pieces; `nope status` names all'
        told = [*told[:MOST], Problem('left out', pieces.ROOM, what)]
    return problems + told


def _rows(
    root: pathlib.Path, unmade: Sequence[Piece], done: set[str], problems: list[Problem]
) -> list[tuple[Problem, Piece]]:
    """A row for each piece that failed or is not there, without what it is for. Notes of failures
    that cannot be read are `problems`."""
    rows = []
    for piece in unmade:
        if (root / piece.failed).exists():
            with noted(problems, piece.failed):
                why = pieces.reason(root / piece.failed)[:LONGEST]
                rows.append((Problem('failed', piece.failed, why), piece))
        elif piece.what == 'export' or not (root / piece.folder).exists():
            needs = [need for need in piece.needs if need not in done]
            what = f'not there: it needs {_some(needs)}' if needs else 'not there'
            rows.append((Problem('missing', piece.folder, what), piece))
    return rows


def _not_drawn(root: pathlib.Path, name: str, unmade: Sequence[Piece]) -> list[Problem]:
    if (root / 'figures' / name / 'summary.json').exists():
        return []
    failed = sum((root / piece.failed).exists() for piece in unmade)
    what = 'not drawn, though all its pieces are done'
    if unmade:
        left = len(unmade) - failed
        what = f'not drawn: {failed} of its pieces failed, {left} are unfinished or not there'
    return [Problem('missing', f'figures/{name}', what)]


def _some(names: Sequence[str]) -> str:
    more = f' and {len(names) - FEW} more' if len(names) > FEW else ''
    return ', '.join(names[:FEW]) + more
