"""Committed results: summaries and numbers of figures as small stable files, and their page."""

from __future__ import annotations

import gzip
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.board import page
from experiments.board.decisions import sizes_of, standings
from experiments.board.summaries import Summary, of_results
from experiments.figures.base import plain
from nope.runtime.files import read_json, write_bytes, write_text

LARGEST_TABLE = 1 << 20


def write(folder: pathlib.Path, summaries: Sequence[Summary]) -> list[pathlib.Path]:
    """Writes SIZE/FIGURE.json below `folder` and removes the numbers beside it, which are of an
    earlier one. A file that says the same of an earlier date stays. The paths written."""
    written = []
    for summary in summaries:
        path = folder / summary.size / f'{summary.figure}.json'
        stated = plain(summary.stated())
        there = read_json(path)
        if isinstance(there, dict) and _says(there, stated):
            continue
        for table in _tables(folder, summary):
            table.unlink(missing_ok=True)
        write_text(path, json.dumps(stated, indent=1, sort_keys=True, allow_nan=False) + '\n')
        written.append(path)
    return written


def write_table(folder: pathlib.Path, summary: Summary, table: pathlib.Path) -> pathlib.Path | None:
    """File SIZE/FIGURE.csv beside a committed summary that has none: the numbers of its figure,
    from which its verdicts follow. One above LARGEST_TABLE bytes is FIGURE.csv.gz, where that is
    not. The path where it was written.

    table: the figure's own CSV.
    """
    paths = _tables(folder, summary)
    committed = (folder / summary.size / f'{summary.figure}.json').exists()
    if not committed or any(path.exists() for path in paths):
        return None
    numbers = table.read_bytes() if table.exists() else b''
    for path, data in zip(paths, (numbers, gzip.compress(numbers, mtime=0)), strict=True):
        if numbers and len(data) <= LARGEST_TABLE:
            write_bytes(path, data)
            return path
    return None


def _tables(folder: pathlib.Path, summary: Summary) -> tuple[pathlib.Path, pathlib.Path]:
    """Paths of a figure's committed CSV, plain and packed."""
    place = folder / summary.size
    return place / f'{summary.figure}.csv', place / f'{summary.figure}.csv.gz'


def _says(there: Mapping[str, Any], stated: Mapping[str, Any]) -> bool:
    """Whether a file states the same, and names its commands if they are known."""
    again = {name: stated[name] for name in ('date', 'drawn_by')}
    known = bool(there.get('drawn_by')) or not stated['drawn_by']
    return known and {**there, **again} == stated


def page_of(folder: pathlib.Path) -> str:
    """claims.md, which stands beside the results in `folder`. ValueError where there are none."""
    summaries = of_results(folder)
    if not summaries:
        raise ValueError(f'{folder} has no results: --workdir=WORK with figures puts them there')
    return page.markdown(
        standings(summaries),
        sizes_of(summaries),
        lambda found: f'{folder.name}/{found.size}/{found.figure}.json',
    )
