"""Checkpoint folders: in a run's own folder, in another one, or in a bucket."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import uuid
from collections.abc import Mapping
from typing import Any

from etils import epath

from nope.runtime.errors import brief
from nope.runtime.files import read_object, write_json

ELSEWHERE = 'checkpoints_in.json'

# Of storage or a network that fails for a moment: the same command may do.
PASSING = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ECONNRESET, errno.EHOSTUNREACH}
_TEMPORARY = '.orbax-checkpoint-tmp'


def in_full(folder: pathlib.Path | str) -> epath.Path:
    """Absolute path of a folder, or the URL of one in a bucket."""
    path = epath.Path(folder)
    return path if in_bucket(path) else epath.Path(os.path.abspath(path))


def in_bucket(path: epath.Path) -> bool:
    return '://' in os.fspath(path)


def of_run(run: pathlib.Path) -> epath.Path:
    """The folder of a run's checkpoints. ValueError, naming it, where the file that says so is
    damaged."""
    found = read_object(run / ELSEWHERE)
    return in_full(run / 'checkpoints' if found is None else named(found, run / ELSEWHERE))


def named(found: Mapping[str, Any], path: pathlib.Path) -> str:
    """The folder that a file, {"folder": FOLDER}, names; ValueError where it names none."""
    folder = found.get('folder')
    try:
        named = isinstance(folder, str) and folder != '' and b'\0' not in os.fsencode(folder)
    except UnicodeEncodeError:
        named = False
    if not named:
        raise ValueError(f'{path} is damaged: folder is {folder!r:.100}; accepted is a path')
    return str(folder)


def settle(run: pathlib.Path, folder: pathlib.Path | str | None) -> epath.Path:
    """Checkpoint folder of a run: `folder`, or the run's own where that is None.

    The choice is noted in the run's folder for later readers. ValueError where the run has
    checkpoints in another place already.
    """
    asked = in_full(folder or run / 'checkpoints')
    known = run / ELSEWHERE
    begun = known.exists() or (run / 'checkpoints').exists()
    if begun and of_run(run) != asked:
        raise ValueError(
            f'compute.checkpoints places those of {run.name} in {asked}, but there are some in '
            f'{of_run(run)}; accepted: that place, or another --workdir'
        )
    if folder and not known.exists():
        write_json(known, {'folder': os.fspath(asked)})
    return asked


def check_writable(place: str) -> None:
    """ValueError, naming compute.checkpoints, unless a file can be written in that folder or
    bucket, and removed; OSError with an errno of PASSING where the storage only fails for a
    moment."""
    probe = in_full(place) / f'.written-{uuid.uuid4().hex[:12]}'
    try:
        probe.parent.mkdir(parents=True, exist_ok=True)
        probe.write_text('')
        probe.unlink()
    except Exception as error:  # of gcsfs, where there is one, or the system's
        needs = "; a bucket needs `pip install 'etils[epath-gcs]'`" * isinstance(error, ImportError)
        why = f'compute.checkpoints is {place!r}; nothing can be written there: {brief(error)}'
        if _passes(error):
            raise OSError(errno.EIO, why) from error
        raise ValueError(f'{why}{needs}') from error


def _passes(error: Exception) -> bool:
    """Whether storage, a network or a service of credentials may work again in a moment."""
    if not isinstance(error, OSError):
        return not isinstance(error, ImportError | ValueError | TypeError)
    return error.errno in PASSING or str(getattr(error, 'code', '')).startswith('5')


def mark(folder: epath.Path) -> tuple[int, int] | None:
    """Identity (device, inode) of a folder; None in a bucket, or where there is no folder."""
    if in_bucket(folder) or not folder.exists():
        return None
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def sweep(folder: epath.Path) -> None:
    """Removes temporary folders of killed saves. In a bucket, where nothing is renamed, a complete
    checkpoint that was copied there may look the same, so nothing is removed.

    Each is renamed first: one that was taken for killed, and stood still, may go on to write there.
    """
    if in_bucket(folder) or not folder.exists():
        return
    for left in folder.glob(f'*{_TEMPORARY}*'):
        aside = folder / f'swept-{uuid.uuid4().hex[:12]}{_TEMPORARY}'
        with contextlib.suppress(FileNotFoundError):  # saved in this moment
            left.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def move(source: epath.Path, target: epath.Path) -> None:
    """Moves a folder and replaces an existing one; in a bucket by copying and deleting."""
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
