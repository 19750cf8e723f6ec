"""Committed results: summaries and the numbers behind them as small stable files, and the text that
is made from them."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.board import page
from experiments.board.decisions import rows, sizes_of
from experiments.board.entries import ENTRIES
from experiments.board.summaries import Summary, of_results
from experiments.figures.base import plain
from nope.runtime.files import read_json, write_text

LARGEST_TABLE = 1 << 20
# Where made text stands in a page that people write: <!-- claims: NAME --> ... <!-- /claims -->.
_BLOCK = re.compile(r'(<!-- claims: (\w+)[^>]*-->\n).*?(<!-- /claims -->)', re.DOTALL)


def write(folder: pathlib.Path, summaries: Sequence[Summary]) -> list[pathlib.Path]:
    """Files SIZE/FIGURE.json below `folder`, of figures that claims name as deciding them (others
    repeat their models); those that say the same of an earlier date stay as they are. The paths of
    those that were written."""
    written = []
    for summary in summaries:
        path = folder / summary.size / f'{summary.figure}.json'
        stated = plain(summary.stated())
        there = read_json(path)
        decides = any(summary.figure in ENTRIES[claim.id].configs for claim in summary.claims)
        if there is None and not decides:
            continue
        if isinstance(there, dict) and _says(there, stated):
            continue
        write_text(path, json.dumps(stated, indent=1, sort_keys=True, allow_nan=False) + '\n')
        written.append(path)
    return written


def write_table(
    folder: pathlib.Path, summary: Summary, table: pathlib.Path, anew: bool
) -> pathlib.Path | None:
    """File SIZE/FIGURE.csv beside a committed summary: the numbers of its figure, from which its
    verdicts follow, where they take LARGEST_TABLE bytes at most. Its path where it was written.

    table: the figure's own CSV. anew: whether the summary was written, so that a table which stands
    there is of another one.
    """
    path = folder / summary.size / f'{summary.figure}.csv'
    if (path.exists() and not anew) or not path.with_suffix('.json').exists():
        return None
    if not table.exists() or table.stat().st_size > LARGEST_TABLE:
        path.unlink(missing_ok=True)
        return None
    write_text(path, table.read_text('utf-8'))
    return path


def _says(there: Mapping[str, Any], stated: Mapping[str, Any]) -> bool:
    """Whether a file states the same, and by which commands that was drawn, if that is known."""
    again = {name: stated[name] for name in ('date', 'drawn_by')}
    known = bool(there.get('drawn_by')) or not stated['drawn_by']
    return known and {**there, **again} == stated


def pages(folder: pathlib.Path) -> dict[pathlib.Path, str]:
    """The pages that follow from the results in `folder`, with their whole text: claims.md beside
    it, and of the README there and of the one above those parts that are marked. ValueError where
    there are no results."""
    summaries = of_results(folder)
    if not summaries:
        raise ValueError(f'{folder} has no results: --workdir=WORK with figures puts them there')
    board, sizes = rows(summaries), sizes_of(summaries)
    eleven = page.grouped(board)[0][1]
    blocks = {
        'counts': page.counts(eleven, sizes),
        'eleven': f'{page.counts(eleven, sizes)}\n\n{page.table(eleven, sizes)}',
    }
    beside = folder.parent
    found = {beside / 'claims.md': page.markdown(board, sizes)}
    for path in (beside / 'README.md', beside.parent / 'README.md'):
        if path.exists():
            found[path] = filled(path.read_text('utf-8'), blocks, path)
    return found


def filled(text: str, blocks: Mapping[str, str], path: pathlib.Path) -> str:
    """`text` with every marked part made anew; ValueError, naming `path`, for an unknown name."""

    def block(found: re.Match[str]) -> str:
        if found[2] not in blocks:
            raise ValueError(
                f'{path} marks claims: {found[2]}; accepted: {", ".join(sorted(blocks))}'
            )
        return f'{found[1]}\n{blocks[found[2]]}\n\n{found[3]}'

    return _BLOCK.sub(block, text)
