"""Draws figures from records alone: no accelerator, no model, no JAX.

    nope draw WORKDIR/figures/fig1 [more figure folders]

A figure folder knows its records from `inputs.json`, which `nope run` leaves there.
"""

from __future__ import annotations

from nope.runtime import door, paths

if __name__ == '__main__':  # before what it imports
    door.enter()

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from experiments import figures, history
from experiments.figures.given import FigureInput
from experiments.homes import check_name
from experiments.statuses import BAD_INPUT
from nope import records
from nope.runtime import files
from nope.runtime.files import read_object, write_json


@contextlib.contextmanager
def alone(folder: pathlib.Path) -> Iterator[None]:
    """Exclusive hold of a figure's folder for a `with` block, waiting for whoever draws there. What
    killed commands left half written is removed."""
    with files.exclusive(folder / '.lock') as locked:
        if locked:
            files.sweep(folder)
        yield


def write_inputs(
    folder: pathlib.Path, name: str, figure: Mapping[str, Any], sources: Mapping[str, pathlib.Path]
) -> None:
    """Notes in `folder` what the figure is drawn from. figure: its kind and options."""
    relative = {key: os.path.relpath(path, folder) for key, path in sources.items()}
    options = {key: value for key, value in figure.items() if key != 'kind'}
    inputs = {'name': name, 'kind': figure['kind'], 'options': options, 'records': relative}
    write_json(folder / 'inputs.json', inputs)


def draw(folder: pathlib.Path) -> pathlib.Path:
    """Draws the figure of `folder`; returns the path of its PNG, or of a table's HTML.

    ValueError where the folder is no figure's, or where its records are missing.
    """
    inputs = read_inputs(folder)
    found = {}
    for name, relative in inputs['records'].items():
        try:
            found[name] = records.load((folder / relative).resolve())
        except FileNotFoundError as error:
            raise ValueError(
                f'figure {inputs["name"]!r} needs the records of {name!r}, which are missing: '
                f'{(folder / relative).resolve()}'
            ) from error
    given = FigureInput(inputs['name'], found, inputs['options'])
    output = figures.draw(inputs['kind'], given)
    figures.write(output, folder)
    return folder / f'{inputs["name"]}.{"html" if output.figure is None else "png"}'


def redraw(folder: pathlib.Path) -> pathlib.Path:
    """As `draw`, of a folder that people may have changed: ValueError, naming inputs.json, also
    where options or records are not of the types that the figure reads."""
    try:
        return draw(folder)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError) as error:
        why = f'{type(error).__name__}: {error!s:.300}'
        raise ValueError(
            f'the options in {folder / "inputs.json"}, or the records that it names, do not fit '
            f'the figure ({why}); `nope run` with its config writes them anew'
        ) from error


def read_inputs(folder: pathlib.Path) -> Mapping[str, Any]:
    """Inputs of a figure from its inputs.json; ValueError, naming the file, for anything else."""
    path = folder / 'inputs.json'
    try:
        inputs = read_object(path)
    except NotADirectoryError:
        inputs = None
    if inputs is None:
        raise ValueError(f'{folder} holds no inputs.json; `nope run` makes one')
    if set(inputs) != {'name', 'kind', 'options', 'records'}:
        raise ValueError(f'{path} holds other fields than name, kind, options and records')
    check_name(f'name in {path}', inputs['name'])
    known = sorted(figures.KINDS)
    if inputs['kind'] not in known:
        raise ValueError(f'kind in {path} is {inputs["kind"]!r:.300}; accepted: {", ".join(known)}')
    for field in ('options', 'records'):
        if not isinstance(inputs[field], dict):
            raise ValueError(f'{field} in {path} is {inputs[field]!r:.300}; it takes named values')
    for name, relative in inputs['records'].items():
        if not isinstance(relative, str) or '\0' in relative:
            raise ValueError(
                f'records.{name} in {path} is {relative!r:.300}; accepted is the path of a folder'
            )
    return inputs


def _note(folder: pathlib.Path) -> None:
    """A line for the drawing in the log of the work folder that `folder` lies in, if it has one."""
    work = folder.absolute().parent.parent
    if not (work / history.FILE).exists():
        return
    try:
        history.note_drawing(work, folder.absolute().name)
    except OSError as error:
        print(
            f'warning: {work / history.FILE} does not name this drawing: {error}', file=sys.stderr
        )


def main(folders: list[str]) -> int:
    if {'--help', '-h'} & {*folders}:
        print(__doc__)
        return 0
    if not folders:
        print(__doc__, file=sys.stderr)
        return BAD_INPUT
    try:
        for folder in map(paths.path, folders):
            read_inputs(folder)  # what is no figure's takes no lock file
            with alone(folder):
                print(redraw(folder))
            _note(folder)
    except (OSError, ValueError) as error:
        print(f'error: {error}', file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
