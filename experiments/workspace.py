"""Layout of a work folder, and whether its parts are finished.

runs/<slug>/       one training: spec.json, checkpoints (or checkpoints_in.json, which says where
                   they are), metrics, done.json at the end; base_model.json of a search, which
                   says where its weights are
records/<slug>/    one evaluation: records.npz, records.json, CSV; of text its samples.jsonl
figures/<name>/    one figure: PNG, PDF, CSV, summary.json, inputs.json
exports/<slug>/    one model as a Hugging Face directory
plans/<name>.json  the pieces of one figure, for `nope status`
programs/          what XLA compiled for a GPU (nope.runtime.compiling)
data/              token shards and TFDS builds shared by all of it
commands.jsonl     every command that worked here: arguments, commit, versions, device
"""

from __future__ import annotations

import os
import pathlib
import uuid
from collections.abc import Iterable

from experiments.specs import Spec
from nope.runtime import processes
from nope.runtime.files import read_json


class Workspace:
    """A work folder, which several commands may share (`experiments.execute` holds its parts).

    make: makes the folder, and refuses one that cannot be written to.
    """

    def __init__(self, root: pathlib.Path, make: bool = True) -> None:
        self.root = root.absolute()
        if not make:
            return
        if self.root.is_file():
            raise ValueError(f'--workdir={root} is a file; accepted: a folder')
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f'--workdir={root} cannot be made: {error}') from error
        if not os.access(self.root, os.W_OK, effective_ids=True):
            raise ValueError(f'--workdir={root} cannot be written to')

    def check_writable(self, paths: Iterable[pathlib.Path]) -> None:
        """ValueError for the first of the paths that this process may not make, or write to."""
        for path in paths:
            there = next(parent for parent in (path, *path.parents) if parent.exists())
            needed = os.W_OK | os.X_OK if there.is_dir() else os.W_OK
            if not os.access(there, needed, effective_ids=True):
                raise ValueError(
                    f'{there} cannot be written to, and {path} is to be written; accepted is a '
                    '--workdir whose folders and files this user may change'
                )

    def check_shared(self) -> None:
        """ValueError unless all processes of the command see this folder."""
        if processes.count() == 1:
            return
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

    def folder(self, spec: Spec) -> pathlib.Path:
        """The home of what a spec describes."""
        return self.root / spec.room / spec.slug()

    def figure(self, name: str) -> pathlib.Path:
        return self.root / 'figures' / name

    def finished(self, spec: Spec) -> bool:
        """True where it is whole, as this process sees it. ValueError where its folder holds
        something else."""
        if not spec.room:
            return True
        folder = self.folder(spec)
        spec.check_folder(folder)
        return read_json(folder / spec.finished) is not None

    @property
    def data(self) -> pathlib.Path:
        return self.root / 'data'
