"""Claims on one page: what the figures of a work folder decided, by size.

    nope claims --workdir=WORK [--size=quick] [--results=configs/results]

Reads the summaries of the figures in WORK and writes the board, WORK/claims/claims.md, and of
figures of several sizes trend.png, .pdf and .csv beside it, the numbers of claims by size. With
--results the claims are written as small files to be committed, in a folder that is there. Their
page and the trend of all sizes are made anew, without --workdir these alone. Figures drawn with
settings that are not their configs' are marked. Exit status: 0 done, 2 bad input. Without an
accelerator and without JAX.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import argparse
import functools
import pathlib
import sys
from collections.abc import Sequence

from experiments import board, figure_configs
from experiments.board import Decision, Standing, Summary, page, results, trend
from experiments.board.decisions import SIZES
from experiments.board.summaries import COMMANDS
from experiments.figures.base import csv_text, rendered
from experiments.report import png
from experiments.statuses import BAD_INPUT
from nope.runtime.files import write_bytes, write_text

TREND_DPI, WIDEST = 110, 2000  # pixels an inch, and pixels at most


def main(arguments: Sequence[str]) -> int:
    given = _parse(arguments)
    try:
        if given.results and not given.results.is_dir():
            raise ValueError(f'--results={given.results}: there is no such folder')
        if given.workdir:
            found = _read(given.workdir, given.size)
            _write(given.workdir, found)
        if given.results:
            _write_results(given.results, found if given.workdir else [], given.workdir)
    except (OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Flags. Exits with BAD_INPUT for others."""
    parser = argparse.ArgumentParser('nope claims', usage=__doc__, allow_abbrev=False)
    parser.add_argument('--workdir', type=paths.path)
    parser.add_argument('--size', choices=SIZES)
    parser.add_argument('--results', type=paths.path)
    given, stray = parser.parse_known_args(arguments)
    if stray:
        parser.exit(BAD_INPUT, f'error: stray arguments {stray}\n')
    if given.workdir is None and given.results is None:
        parser.exit(BAD_INPUT, 'error: --workdir must name a work folder\n')
    return given


def _read(work: pathlib.Path, size: str | None) -> list[Summary]:
    """Summaries of the figures of a work folder, of one size or of all. ValueError where there is
    none."""
    folder = work / 'figures'
    if not folder.is_dir():
        raise ValueError(f'--workdir={work} has no folder figures; `nope run` makes one')
    found = []
    for path in sorted(folder.glob('*/summary.json')):
        place = figure_configs.config_of(path.parent.name)
        if place is None:
            print(f'left out: {path.parent}, whose name is that of no config', file=sys.stderr)
        elif size in (None, place[1]):
            found.append(figure_configs.summary(path.parent, *place))
    if not found:
        which = f'size {size}' if size else 'any size'
        raise ValueError(f'--workdir={work} has no figure of {which} in {folder}')
    return found


def _write(work: pathlib.Path, found: Sequence[Summary]) -> None:
    """The board, and where there are figures of several sizes how numbers change with them; prints
    the path of the page."""
    folder = work / 'claims'
    standings, sizes = board.standings(found), board.sizes_of(found)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / 'claims.md', page.markdown(standings, sizes, _summary_of))
    tokens = functools.partial(figure_configs.trained_tokens, figures=work / 'figures')
    if _trend(folder, standings, tokens) is not None:
        print(folder / 'trend.png')
    print(folder / 'claims.md')


def _summary_of(decision: Decision) -> str:
    name = figure_configs.figure_name(decision.figure, decision.size)
    return f'../figures/{name}/summary.json'


def _trend(
    folder: pathlib.Path, standings: Sequence[Standing], tokens: trend.Tokens
) -> bool | None:
    """Writes how numbers change with size, and tells whether that differs from before. None without
    a number at several sizes."""
    courses = trend.courses(standings, tokens)
    if not courses:
        return None
    text, path = csv_text(trend.csv_rows(courses)), folder / 'trend.csv'
    changed = not path.exists() or path.read_text('utf-8') != text
    figure = trend.draw(courses)
    picture = rendered(figure, 'png', TREND_DPI)
    write_bytes(folder / 'trend.png', png.smaller(picture, WIDEST))
    write_bytes(folder / 'trend.pdf', rendered(figure, 'pdf', TREND_DPI))
    write_text(path, text)
    return changed


def _write_results(folder: pathlib.Path, found: Sequence[Summary], work: pathlib.Path) -> None:
    """Results of the figures in `work` and the pages made from them; prints the paths of those that
    changed. ValueError for a figure of a changed config."""
    names = [figure_configs.figure_name(s.figure, s.size) for s in found]
    for s, name in zip(found, names, strict=True):
        figure_configs.check_unchanged(work / 'figures' / name, s.figure, s.size)
    changed = results.write(folder, found)
    for s, name in zip(found, names, strict=True):
        table = results.write_table(folder, s, work / 'figures' / name / f'{name}.csv')
        changed += [] if table is None else [table]
    text, path = results.page_of(folder), folder.parent / 'claims.md'
    if not path.exists() or path.read_text('utf-8') != text:
        write_text(path, text)
        changed.append(path)
    committed = board.of_results(folder)
    if _trend(folder, board.standings(committed), figure_configs.trained_tokens):
        changed.append(folder / 'trend.png')
    for path in changed:
        print(path)
    _warn(found, committed, work)


def _warn(found: Sequence[Summary], committed: Sequence[Summary], work: pathlib.Path) -> None:
    """Says which results of the figures in `work` have no command that drew them."""
    places = {(s.figure, s.size) for s in committed if not s.drawn_by}
    for s in found:
        if (s.figure, s.size) in places:
            name = figure_configs.figure_name(s.figure, s.size)
            print(
                f'warning: {work / COMMANDS} names no command that drew {name}: drawn_by of its '
                'result is empty',
                file=sys.stderr,
            )


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
