"""Summaries of figures as the board reads them, from work folders and from committed results."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from experiments import config_files, homes
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import Number, Numbers
from experiments.figures.claims.verdict import VERDICTS
from experiments.figures.look import natural
from nope.runtime.files import logged_rows, read_object

SUMMARY = 'summary.json'
COMMANDS = 'commands.jsonl'
DRAWN_BY = ('commit', 'jax', 'device', 'devices')


@dataclasses.dataclass(frozen=True)
class Finding:
    """A claim as one figure decided it: what of summary.json the board shows."""

    id: str
    verdict: str
    numbers: Numbers
    statement: str

    def stated(self) -> dict[str, Any]:
        numbers = [number.stated() for number in self.numbers]
        return {
            'id': self.id,
            'verdict': self.verdict,
            'statement': self.statement,
            'numbers': numbers,
        }


@dataclasses.dataclass(frozen=True)
class Summary:
    """Claims of a figure and where they come from.

    The figure has the name of its config, with that of another text behind it. The size is 'quick'
    or the like. Seeds are in the order of numbers by seed, () where not known. `runs` maps names of
    records to identities of runs. The date is that of the summary, UTC. `drawn_by` has `DRAWN_BY`
    of each command for this figure, the same ones once. `changed` lists settings that its config
    has not at that size, as 'PATH=VALUE'; committed figures have none.
    """

    figure: str
    size: str
    seeds: tuple[int, ...]
    runs: Mapping[str, str]
    date: str
    claims: tuple[Finding, ...]
    drawn_by: tuple[Mapping[str, Any], ...] = ()
    changed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return config_files.text_of(self.figure, self.size)

    def stated(self) -> dict[str, Any]:
        """As a committed file has it."""
        return {
            'figure': self.figure,
            'config': config_files.placed(self.figure, self.size),
            'size': self.size,
            'text': self.text,
            'seeds': list(self.seeds),
            'date': self.date,
            'drawn_by': [dict(command) for command in self.drawn_by],
            'runs': dict(sorted(self.runs.items())),
            'claims': [found.stated() for found in sorted(self.claims, key=lambda c: c.id)],
        }


def of_work(folder: pathlib.Path, figure: str, size: str) -> Summary:
    """Of a figure's folder in a work folder. ValueError, naming the file, for one that is damaged
    or of an earlier format; FileNotFoundError where there is none."""
    path = folder / SUMMARY
    given = homes.settings_of(folder).get('seeds', [])
    moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    with _naming(path, f'nope draw {folder} writes it anew'):
        found = read_object(path) or {}
        return Summary(
            figure=figure,
            size=size,
            seeds=tuple(sorted(given, key=lambda seed: natural.order(str(seed)))),
            runs=dict(found['runs']),
            date=f'{moment:%Y-%m-%d}',
            claims=tuple(map(_finding, found['claims'])),
            drawn_by=_drawn_by(folder.parents[1] / COMMANDS, folder.name),
        )


def _drawn_by(path: pathlib.Path, name: str) -> tuple[Mapping[str, Any], ...]:
    """Of the commands for a figure of that name, from the log of a work folder. A line that is
    damaged is left out: no result hangs on it."""
    found: list[Mapping[str, Any]] = []
    for command in (row for _, row in logged_rows(path) if row is not None):
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            jax = command['versions'].get('jax')
            said = {**{key: command.get(key) for key in DRAWN_BY}, 'jax': jax}
            if command['figure'] == name and said not in found:
                found.append(said)
    return tuple(found)


def of_results(folder: pathlib.Path) -> list[Summary]:
    """Committed ones, SIZE/FIGURE.json below `folder`. ValueError, naming the file, as `of_work`
    and where a file lies in another place than it says."""
    return [_committed(path) for path in sorted(folder.glob('*/*.json'))]


def _committed(path: pathlib.Path) -> Summary:
    with _naming(path, 'nope claims --results writes it'):
        found = read_object(path) or {}
        figure, size = found['figure'], found['size']
        if (size, figure) != (path.parent.name, path.stem):
            raise ValueError(f'it says that it is {figure!r} at {size!r}')
        seeds, drawn_by = tuple(found['seeds']), tuple(found.get('drawn_by', ()))
        claims = tuple(map(_finding, found['claims']))
        return Summary(figure, size, seeds, found['runs'], found['date'], claims, drawn_by)


@contextlib.contextmanager
def _naming(path: pathlib.Path, remedy: str) -> Iterator[None]:
    """ValueError, naming the file, for what lacks a field or has one of another type."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        said = f'it lacks {error}' if isinstance(error, KeyError) else error
        raise ValueError(f'{path} is damaged or of another format: {said}; {remedy}') from error


def _finding(stated: Mapping[str, Any]) -> Finding:
    numbers = tuple(map(Number.from_stated, stated['numbers']))
    found = Finding(stated['id'], stated['verdict'], numbers, stated['statement'])
    if found.id not in CLAIMS or found.verdict not in VERDICTS:
        raise ValueError(f'{found.id!r} with {found.verdict!r} is no such claim or verdict')
    return found
