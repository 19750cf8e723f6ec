"""Summaries of figures as the board reads them, from work folders and from committed results."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from experiments import config_files, homes
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.headline import Number, Numbers
from experiments.figures.claims.verdict import VERDICTS
from experiments.figures.look import natural
from nope.runtime.files import read_object

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

    figure: its name, which is that of its config. size: 'quick' or the like. seeds: in the order
    that numbers by seed have, () where they are not known. runs: names of records -> identities of
    the runs. date: of the summary, UTC, YYYY-MM-DD. drawn_by: `DRAWN_BY` of each command that drew
    it, the same ones once; what other figures made and this one shares is not among them. changed:
    'PATH=VALUE' of settings that its config has not at that size; committed ones have none.
    """

    figure: str
    size: str
    seeds: tuple[int, ...]
    runs: Mapping[str, str]
    date: str
    claims: tuple[Finding, ...]
    drawn_by: tuple[Mapping[str, Any], ...] = ()
    changed: tuple[str, ...] = ()

    def stated(self) -> dict[str, Any]:
        """As a committed file has it."""
        return {
            'figure': self.figure,
            'config': f'{config_files.place(self.figure)}:{self.size}',
            'size': self.size,
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
    found = _read(path)
    remedy = f'python -m experiments.draw {folder} writes it anew'
    claims = _claims(path, found, remedy)
    runs = _typed(path, found, 'runs', dict, remedy)
    given = homes.settings_of(folder).get('seeds', [])
    seeds = sorted(given, key=lambda seed: natural.order(str(seed)))
    moment = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    drawn_by = _drawn_by(folder.parents[1] / COMMANDS, folder.name)
    return Summary(figure, size, tuple(seeds), runs, f'{moment:%Y-%m-%d}', claims, drawn_by)


def _drawn_by(path: pathlib.Path, name: str) -> tuple[Mapping[str, Any], ...]:
    """Of the commands for a figure of that name, from the log of a work folder. A line that is
    damaged is left out: no result hangs on it."""
    found: list[Mapping[str, Any]] = []
    for line in path.read_text(errors='replace').splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            command = json.loads(line)
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
    found, remedy = _read(path), 'python -m experiments.claims --results writes it'
    figure, size = (_typed(path, found, name, str, remedy) for name in ('figure', 'size'))
    if (size, figure) != (path.parent.name, path.stem):
        raise ValueError(f'{path} says that it is {figure!r} at {size!r}; {remedy}')
    seeds = tuple(_typed(path, found, 'seeds', list, remedy))
    runs = _typed(path, found, 'runs', dict, remedy)
    date = _typed(path, found, 'date', str, remedy)
    drawn_by = tuple(_typed(path, {'drawn_by': [], **found}, 'drawn_by', list, remedy))
    return Summary(figure, size, seeds, runs, date, _claims(path, found, remedy), drawn_by)


def _read(path: pathlib.Path) -> Mapping[str, Any]:
    found = read_object(path)
    if found is None:
        raise FileNotFoundError(f'{path} is missing')
    return found


def _typed(path: pathlib.Path, found: Mapping[str, Any], name: str, kind: type, remedy: str) -> Any:
    if not isinstance(found.get(name), kind):
        raise ValueError(
            f'{name} in {path} is {found.get(name)!r:.100}, not a {kind.__name__}: the file is '
            f'damaged or of another format; {remedy}'
        )
    return found[name]


def _claims(path: pathlib.Path, found: Mapping[str, Any], remedy: str) -> tuple[Finding, ...]:
    claims = _typed(path, found, 'claims', list, remedy)
    try:
        read = tuple(
            Finding(
                c['id'], c['verdict'], tuple(map(Number.from_stated, c['numbers'])), c['statement']
            )
            for c in claims
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f'claims in {path} lack {error}: the file is damaged or of an earlier format; {remedy}'
        ) from error
    for claim in read:
        if claim.id not in CLAIMS or claim.verdict not in VERDICTS:
            raise ValueError(
                f'claims in {path} have {claim.id!r} with {claim.verdict!r}: no such claim or '
                f'verdict; {remedy}'
            )
    return read
