"""Figures that do not fit their records: gone, or newer than the figure."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from experiments.report.problems import Problem
from experiments.report.workfolder import FigureFolder, WorkFolder, relative


def find(folder: WorkFolder) -> list[Problem]:
    """Of all figures; what was found while the folder was read is in its own `problems`."""
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
