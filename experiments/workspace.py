"""Where things lie in a work folder, and who may write to them.

runs/<slug>/       one training: spec.json, checkpoints, metrics, done.json at the end
records/<slug>/    one evaluation: records.npz, records.json, CSV
figures/<name>/    one figure: PNG, PDF, CSV, summary.json, inputs.json
data/              token shards and TFDS builds shared by all of it
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from nope.identity import first_difference

log = logging.getLogger(__name__)


class Workspace:
    """A work folder. Safe for several commands at once on one machine."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root.absolute()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f'--workdir={root} cannot be made: {error}') from error
        if not os.access(self.root, os.W_OK):
            raise ValueError(f'--workdir={root} cannot be written to')

    def run(self, slug: str) -> pathlib.Path:
        return self.root / 'runs' / slug

    def records(self, slug: str) -> pathlib.Path:
        return self.root / 'records' / slug

    def figure(self, name: str) -> pathlib.Path:
        return self.root / 'figures' / name

    @property
    def data(self) -> pathlib.Path:
        return self.root / 'data'


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[None]:
    """Holds the folder for this process; waits, saying so, while another one has it.

    The lock is the kernel's and goes with the process, however it ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / '.lock').open('a+') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.info('%s is being made by another process; waiting for it', folder.name)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_json(path: pathlib.Path, value: Any) -> None:
    """Writes so that the file is either whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + '.partial')
    partial.write_text(json.dumps(value, indent=2, sort_keys=True) + '\n')
    partial.rename(path)


def read_json(path: pathlib.Path) -> Any | None:
    """The file's value, or None where there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def claim(folder: pathlib.Path, spec: Mapping[str, Any]) -> None:
    """Marks `folder` as the home of `spec`; ValueError where another one lives there."""
    found = read_json(folder / 'spec.json')
    if found is None:
        write_json(folder / 'spec.json', spec)
        return
    different = first_difference(spec, found)
    if different:
        raise ValueError(f'{folder} holds something made from another config: {different}')
