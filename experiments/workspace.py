"""Where things lie in a work folder, and who may write to them.

runs/<slug>/       one training: spec.json, checkpoints (or checkpoints_in.json, which says where
                   they are), metrics, done.json at the end
records/<slug>/    one evaluation: records.npz, records.json, CSV; of text its samples.jsonl
figures/<name>/    one figure: PNG, PDF, CSV, summary.json, inputs.json
exports/<slug>/    one model as a Hugging Face directory
data/              token shards and TFDS builds shared by all of it
"""

from __future__ import annotations

import os
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any

from nope.identity import first_difference
from nope.runtime import processes
from nope.runtime.files import read_json, write_json


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

    def check_shared(self) -> None:
        """ValueError unless all processes of the command see this folder."""
        name = processes.from_first(self._leave_mark)
        seen = processes.exchange((self.root / name).exists())
        processes.from_first(lambda: (self.root / name).unlink())
        if not all(seen):
            raise ValueError(
                f'--workdir={self.root}: process {seen.index(False)} does not see what the first '
                'process wrote there; all of them need one folder, on a file system they share'
            )

    def _leave_mark(self) -> str:
        name = f'.seen-by-all-{uuid.uuid4().hex}'
        (self.root / name).touch()
        return name

    def run(self, slug: str) -> pathlib.Path:
        return self.root / 'runs' / slug

    def records(self, slug: str) -> pathlib.Path:
        return self.root / 'records' / slug

    def figure(self, name: str) -> pathlib.Path:
        return self.root / 'figures' / name

    def export(self, slug: str) -> pathlib.Path:
        return self.root / 'exports' / slug

    @property
    def data(self) -> pathlib.Path:
        return self.root / 'data'


def check_claim(folder: pathlib.Path, spec: Mapping[str, Any]) -> None:
    """ValueError where `folder` is the home of something else than `spec`."""
    found = read_json(folder / 'spec.json')
    different = '' if found is None else first_difference(spec, found)
    if different:
        raise ValueError(f'{folder} holds something made from another config: {different}')


def claim(folder: pathlib.Path, spec: Mapping[str, Any]) -> None:
    """Marks `folder` as the home of `spec`; ValueError as `check_claim`."""
    check_claim(folder, spec)
    if not (folder / 'spec.json').exists():
        write_json(folder / 'spec.json', spec)
