"""Where the checkpoints of a run lie: in its own folder, or in another one, here or in a bucket."""

from __future__ import annotations

import os
import pathlib

from etils import epath

from nope.runtime.files import read_json, write_json

ELSEWHERE = 'checkpoints_in.json'


def in_full(folder: pathlib.Path | str) -> epath.Path:
    """The path of a folder, or of one in a bucket, whatever the current folder is."""
    path = epath.Path(folder)
    return path if in_bucket(path) else epath.Path(os.path.abspath(path))


def in_bucket(path: epath.Path) -> bool:
    return '://' in os.fspath(path)


def of_run(run: pathlib.Path) -> epath.Path:
    """The folder of a run's checkpoints."""
    found = read_json(run / ELSEWHERE)
    return in_full(found['folder'] if found else run / 'checkpoints')


def settle(run: pathlib.Path, folder: pathlib.Path | str | None) -> epath.Path:
    """Decides where a run's checkpoints go: to `folder`, or to its own where that is None.

    Noted in the run's folder, for whoever reads them later. ValueError where they go to another
    place already: those that are there would be forgotten.
    """
    asked = in_full(folder or run / 'checkpoints')
    known = run / ELSEWHERE
    begun = known.exists() or (run / 'checkpoints').exists()
    if begun and of_run(run) != asked:
        raise ValueError(
            f'compute.checkpoints: those of {run.name} would go to {asked}, but there are some in '
            f'{of_run(run)}; accepted is that place, or another --workdir'
        )
    if folder and not known.exists():
        write_json(known, {'folder': os.fspath(asked)})
    return asked


def mark(folder: epath.Path) -> tuple[int, int] | None:
    """What tells a folder from another one under the same name; None in a bucket, or for none."""
    if in_bucket(folder) or not folder.exists():
        return None
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def sweep(folder: epath.Path) -> None:
    """Removes what saves that were killed have left. In a bucket, where nothing is renamed, a whole
    checkpoint that was copied there may look the same: they stay."""
    if not in_bucket(folder) and folder.exists():
        for left in folder.glob('*.orbax-checkpoint-tmp*'):
            left.rmtree()


def move(source: epath.Path, target: epath.Path) -> None:
    """Moves a folder, over one that is there. A bucket has no folders that could be renamed."""
    if target.exists():
        target.rmtree()
    target.parent.mkdir(parents=True, exist_ok=True)
    if in_bucket(source):
        _copy(source, target)
        source.rmtree()
    else:
        source.rename(target)


def _copy(source: epath.Path, target: epath.Path) -> None:
    for path in source.iterdir():
        if path.is_dir():
            _copy(path, target / path.name)
        else:
            path.copy(target / path.name)
