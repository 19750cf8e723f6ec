"""Draws figures from records alone: no accelerator, no model, no JAX.

    python -m experiments.draw WORKDIR/figures/fig1 [more figure folders]

A figure folder knows its records from `inputs.json`, which `experiments.run` leaves there.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from experiments import figures
from experiments.figures.base import FigureInput
from experiments.homes import check_name
from nope import records
from nope.runtime import files
from nope.runtime.files import read_json, write_json


@contextlib.contextmanager
def alone(folder: pathlib.Path) -> Iterator[None]:
    """Exclusive hold of a figure's folder for a `with` block, waiting for whoever draws there. What
    killed commands left half written is removed."""
    with files.exclusive(folder / '.lock') as locked:
        if locked:
            files.sweep(folder)
        yield


def write_inputs(
    folder: pathlib.Path,
    name: str,
    figure: Mapping[str, Any],
    sources: Mapping[str, pathlib.Path],
) -> None:
    """Notes in `folder` what the figure is drawn from. figure: its kind and options."""
    relative = {key: os.path.relpath(path, folder) for key, path in sources.items()}
    options = {key: value for key, value in figure.items() if key != 'kind'}
    inputs = {'name': name, 'kind': figure['kind'], 'options': options, 'records': relative}
    write_json(folder / 'inputs.json', inputs)


def draw(folder: pathlib.Path) -> pathlib.Path:
    """Draws the figure of `folder`; returns the PNG's path.

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
    figures.write(figures.draw(inputs['kind'], given), folder)
    return folder / f'{inputs["name"]}.png'


def read_inputs(folder: pathlib.Path) -> Mapping[str, Any]:
    """Inputs of a figure from its inputs.json; ValueError, naming the file, for anything else."""
    path = folder / 'inputs.json'
    try:
        inputs = read_json(path)
    except NotADirectoryError:
        inputs = None
    if inputs is None:
        raise ValueError(f'{folder} holds no inputs.json; experiments.run makes one')
    if not isinstance(inputs, dict) or set(inputs) != {'name', 'kind', 'options', 'records'}:
        raise ValueError(f'{path} holds other fields than name, kind, options and records')
    check_name(f'name in {path}', inputs['name'])
    if inputs['kind'] not in figures.KINDS:
        raise ValueError(
            f'kind in {path} is {inputs["kind"]!r}; accepted: {", ".join(sorted(figures.KINDS))}'
        )
    for field in ('options', 'records'):
        if not isinstance(inputs[field], dict):
            raise ValueError(f'{field} in {path} is {inputs[field]!r}; it takes named values')
    return inputs


def main(folders: list[str]) -> int:
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for folder in map(pathlib.Path, folders):
            read_inputs(folder)  # what is no figure's takes no lock file
            with alone(folder):
                print(draw(folder))
    except ValueError as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
