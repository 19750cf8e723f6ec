"""Files that several processes may want to make at the same time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
from collections.abc import Iterator


@contextlib.contextmanager
def exclusive(path: pathlib.Path) -> Iterator[bool]:
    """Holds the lock file `path`, waiting for whoever holds it; it ends with the process.

    Yields False without waiting on a file system that has no locks: makers must therefore
    also write under a name of their own and rename, so that the worst case is work done twice.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('a') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            locked = True
        except OSError:
            locked = False
        yield locked


def move_into_place(partial: pathlib.Path, final: pathlib.Path) -> None:
    """Renames a finished folder; where another process was first, drops this one."""
    try:
        os.rename(partial, final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(partial)


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a file that is either absent or whole."""
    partial = path.with_name(f'{path.name}.partial-{os.getpid()}')
    partial.write_text(text)
    partial.replace(path)
