"""A work folder as it lies on the disk: its figures, records and runs, as far as they are read.

Nothing in it is believed: what is damaged becomes a row of `problems`, and the rest is shown.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any

from experiments import draw
from experiments.homes import SETTINGS, SPEC
from experiments.report.problems import Problem, noted
from nope import records
from nope.records import Records
from nope.runtime.files import logged_rows, read_object

Rows = tuple[Mapping[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class FigureFolder:
    """name: of its files. records: name of a record -> path of its folder from the work folder.
    settings: path -> value, of spec.json."""

    name: str
    folder: pathlib.Path
    records: Mapping[str, str]
    summary: Mapping[str, Any]
    settings: Mapping[str, Any]
    caption: str


@dataclasses.dataclass(frozen=True)
class Recording:
    """Records of one evaluation. names: 'FIGURE: RECORD' wherever a figure reads them, and then
    the slug."""

    slug: str
    folder: pathlib.Path
    names: tuple[str, ...]
    records: Records
    samples: Rows


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """A training. names: as of `Recording`. done: None where it is unfinished."""

    slug: str
    folder: pathlib.Path
    names: tuple[str, ...]
    rows: Rows
    bad_steps: Rows
    goodput: Mapping[str, Any]
    spec: Mapping[str, Any]
    done: Mapping[str, Any] | None


@dataclasses.dataclass(frozen=True)
class WorkFolder:
    root: pathlib.Path
    figures: tuple[FigureFolder, ...]
    recordings: tuple[Recording, ...]
    runs: tuple[RunFolder, ...]
    problems: list[Problem]


def read(root: pathlib.Path) -> WorkFolder:
    """All that is under `root`. ValueError where there is no figure, no record and no run."""
    homes = {room: _homes(root / room) for room in ('figures', 'records', 'runs')}
    if not any(homes.values()):
        raise ValueError(
            f'{root} holds no figures, no records and no runs; accepted is a folder that '
            '`nope run` was given as --workdir'
        )
    problems: list[Problem] = []
    figures = tuple(_figure(root, folder, problems) for folder in homes['figures'])
    recordings = [_recording(root, f, figures, problems) for f in homes['records']]
    runs = tuple(_run(root, folder, figures, problems) for folder in homes['runs'])
    named = sorted((r for r in recordings if r), key=lambda recording: recording.names)
    return WorkFolder(root, figures, tuple(named), runs, problems)


def lines(path: pathlib.Path, root: pathlib.Path, problems: list[Problem]) -> Rows:
    """Rows of a file of JSON lines; nothing where there is none. A last line without its end is
    what a kill leaves; other lines that are no objects are a problem."""
    found = []
    with noted(problems, relative(path, root)):
        found = [*logged_rows(path)]
    damaged = [number for number, row in found if row is None]
    if damaged:
        what = f'{len(damaged)} of its lines are no rows, the first is line {damaged[0]}'
        problems.append(Problem('damaged', relative(path, root), what))
    return tuple(row for _, row in found if row is not None)


def relative(path: pathlib.Path, root: pathlib.Path) -> str:
    return os.path.relpath(path, root)


def _homes(room: pathlib.Path) -> list[pathlib.Path]:
    try:
        return sorted(path for path in room.iterdir() if path.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _content(path: pathlib.Path, root: pathlib.Path, problems: list[Problem]) -> bytes:
    """The bytes of a file, b'' where there is none."""
    if path.exists():
        with noted(problems, relative(path, root)):
            return path.read_bytes()
    return b''


def _object(path: pathlib.Path, root: pathlib.Path, problems: list[Problem]) -> dict[str, Any]:
    """The object of a JSON file, {} where there is none or it is damaged."""
    with noted(problems, relative(path, root)):
        return read_object(path) or {}
    return {}


def _figure(root: pathlib.Path, folder: pathlib.Path, problems: list[Problem]) -> FigureFolder:
    inputs: Mapping[str, Any] = {'name': folder.name, 'records': {}}
    if (folder / 'inputs.json').exists():
        with noted(problems, relative(folder / 'inputs.json', root)):
            inputs = draw.read_inputs(folder)
    else:
        problems.append(Problem('missing', relative(folder / 'inputs.json', root), 'not there'))
    settings = _object(folder / SPEC, root, problems).get(SETTINGS, {})
    return FigureFolder(
        name=inputs['name'],
        folder=folder,
        records={
            k: os.path.relpath(os.path.abspath(folder / v), os.path.abspath(root))
            for k, v in inputs['records'].items()
        },
        summary=_object(folder / 'summary.json', root, problems),
        settings=settings if isinstance(settings, dict) else {},
        caption=_content(folder / 'caption.txt', root, problems).decode(errors='replace').strip(),
    )


def _recording(
    root: pathlib.Path,
    folder: pathlib.Path,
    figures: tuple[FigureFolder, ...],
    problems: list[Problem],
) -> Recording | None:
    """None where they are unfinished or damaged."""
    slug, loaded = folder.name, None
    try:
        loaded = records.load(folder)
    except FileNotFoundError:
        what = 'the evaluation has not finished'
        problems.append(Problem('unfinished', relative(folder / 'records.json', root), what))
    except (OSError, ValueError) as error:
        problems.append(Problem('damaged', relative(folder, root), str(error)[:500]))
    if loaded is None:
        return None
    path = relative(folder, root)
    names = [f'{f.name}: {k}' for f in figures for k, found in f.records.items() if found == path]
    return Recording(
        slug=slug,
        folder=folder,
        names=(*names, slug),
        records=loaded,
        samples=lines(folder / 'samples.jsonl', root, problems),
    )


def _run(
    root: pathlib.Path,
    folder: pathlib.Path,
    figures: tuple[FigureFolder, ...],
    problems: list[Problem],
) -> RunFolder:
    slug, identifier = folder.name, folder.name.rpartition('-')[2]
    names = [
        f'{figure.name}: {record}'
        for figure in figures
        for record, run_id in _mapping(figure.summary.get('runs')).items()
        if str(run_id).rpartition('-')[2] == identifier
    ]
    done = _object(folder / 'done.json', root, problems)
    return RunFolder(
        slug=slug,
        folder=folder,
        names=(*names, slug),
        rows=lines(folder / 'metrics.jsonl', root, problems),
        bad_steps=lines(folder / 'bad_steps.jsonl', root, problems),
        goodput=_object(folder / 'goodput.json', root, problems),
        spec=_object(folder / SPEC, root, problems),
        done=done or None,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
