"""Files that several processes may want to make at the same time, each whole or absent."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

log = logging.getLogger(__name__)


@contextlib.contextmanager
def exclusive(path: pathlib.Path) -> Iterator[bool]:
    """Holds the lock file `path`, waiting (and saying so) for whoever holds it; the lock is the
    kernel's and ends with the process, however that ends.

    Yields False without waiting on a file system that has no locks: makers must therefore
    also write under a name of their own and rename, so that the worst case is work done twice.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('a') as file:
        yield _lock(file.fileno(), path)


def share_until_exit(path: pathlib.Path) -> None:
    """Holds the lock file `path` as long as this process lives, together with all others that do
    so; `exclusive` waits for the last of them. Does nothing where there are no locks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def move_into_place(partial: pathlib.Path, final: pathlib.Path) -> None:
    """Renames a finished folder; where another process was first, drops this one."""
    try:
        os.rename(partial, final)
    except OSError:
        if not final.is_dir():
            raise
        shutil.rmtree(partial)


def write_bytes(path: pathlib.Path, data: bytes) -> None:
    """Writes a file that is either absent or whole; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f'{path.name}.partial-{os.getpid()}')
    partial.write_bytes(data)
    partial.replace(path)


def write_text(path: pathlib.Path, text: str) -> None:
    """`write_bytes` of a text in UTF-8."""
    write_bytes(path, text.encode())


def write_json(path: pathlib.Path, value: Any) -> None:
    """`write_text` of a JSON value, for people too."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True) + '\n')


def read_json(path: pathlib.Path) -> Any | None:
    """The file's value, or None where there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _lock(descriptor: int, path: pathlib.Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        log.info('another process is at work on %s; waiting for it', path.parent)
    except OSError:
        return False
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return True
