"""Provenance: settings and commands of every figure; data, versions and digests as recorded."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from experiments import figure_configs
from experiments.board.summaries import COMMANDS
from experiments.figure_configs import Differences
from experiments.report import workfolder
from experiments.report.claims import shown
from experiments.report.problems import noted
from experiments.report.workfolder import FigureFolder, WorkFolder, relative

# Fields of specs and records that say what they were made with.
MADE_WITH = ('commit', 'device', 'devices', 'versions', 'jax', 'python', 'builder')


@dataclasses.dataclass(frozen=True)
class FigureOrigin:
    """settings: all that determine the figure, (path, value)."""

    figure: str
    differences: Differences
    settings: tuple[tuple[str, str], ...]
    redraw: str
    rerun: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.figure,)

    @property
    def compared(self) -> Any:
        return self.settings


@dataclasses.dataclass(frozen=True)
class DataOrigin:
    """A source of text that runs read. runs: how many."""

    kind: str
    facts: tuple[tuple[str, str], ...]
    runs: int

    @property
    def names(self) -> tuple[str, ...]:
        return (f'{self.kind} {dict(self.facts).get("digest", "")}'.strip(), self.kind)

    @property
    def compared(self) -> Any:
        return self.facts


@dataclasses.dataclass(frozen=True)
class MadeWith:
    """A version, commit or device, as it is recorded. places: how many files say so."""

    field: str
    value: str
    places: int

    @property
    def names(self) -> tuple[str, ...]:
        return (f'{self.field} {self.value}',)

    @property
    def compared(self) -> Any:
        return self.value


def figures(folder: WorkFolder) -> list[FigureOrigin]:
    found = []
    asked = _asked(folder)
    for figure in folder.figures:
        with noted(folder.problems, relative(figure.folder / 'spec.json', folder.root)):
            found.append(_figure(folder, figure, asked.get(figure.name, '')))
    return found


def _asked(folder: WorkFolder) -> dict[str, str]:
    """By figure the config of the newest command for it that the folder's log has."""
    found = {}
    for line in workfolder.lines(folder.root / COMMANDS, folder.root, []):
        arguments = line.get('arguments')
        for argument in arguments if isinstance(arguments, list) else ():
            if isinstance(argument, str) and argument.startswith('--config='):
                found[str(line.get('figure'))] = argument.partition('=')[2]
    return found


def _figure(folder: WorkFolder, figure: FigureFolder, asked: str) -> FigureOrigin:
    differences = figure_configs.differences(figure.settings, asked)
    rerun = ''
    if differences.config and differences.flags is not None:
        file, colon, argument = differences.config.partition(':')
        parts = [
            f'nope run {pathlib.PurePath(file).stem}{colon}{argument}',
            f'--workdir={shlex.quote(str(folder.root))}',
            *differences.flags,
        ]
        rerun = ' '.join(parts)
    settings = sorted(figure.settings.items())
    return FigureOrigin(
        figure=figure.name,
        differences=differences,
        settings=tuple((path, f'{value!r:.300}') for path, value in settings),
        redraw=f'nope draw {shlex.quote(str(figure.folder))}',
        rerun=rerun,
    )


def data(folder: WorkFolder) -> list[DataOrigin]:
    """Sources of all runs, each once."""
    counts: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for run in folder.runs:
        with noted(folder.problems, f'{relative(run.folder, folder.root)}/spec.json'):
            for key in {_source(source) for source in _sources(run.spec)}:
                counts[key] = counts.get(key, 0) + 1
    return [DataOrigin(*key, runs) for key, runs in sorted(counts.items())]


def made_with(folder: WorkFolder) -> list[MadeWith]:
    """Versions, commits and devices as specs, records and the log of commands name them."""
    counts: dict[tuple[str, str], int] = {}
    told = [r.spec for r in folder.runs] + [dict(r.records.attributes) for r in folder.recordings]
    told += workfolder.lines(folder.root / COMMANDS, folder.root, folder.problems)
    for place in told:
        for key in set(_said(place)):
            counts[key] = counts.get(key, 0) + 1
    return [MadeWith(*key, places) for key, places in sorted(counts.items())]


def _said(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in MADE_WITH and not isinstance(inner, Mapping | list):
                yield key, shown(inner)[:200]
            else:
                yield from ((f'{key} {f}' if key in MADE_WITH else f, v) for f, v in _said(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _said(inner)


def _sources(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = spec.get('data', {}).get('sources', [])
    if not isinstance(found, list):
        raise ValueError(f'data.sources is {found!r:.100}; accepted is a list')
    return found


def _source(source: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Kind and plain facts, without its weight in a mixture."""
    plain = {k: v for k, v in source.items() if not isinstance(v, dict | list)}
    facts = ((k, shown(v)[:200]) for k, v in sorted(plain.items()) if k not in ('kind', 'weight'))
    return str(plain['kind']), tuple(facts)
