"""Holder of a folder as others see it: by its lock file or its lease, without taking either.

Imports no JAX, so that a look costs nothing.
"""

from __future__ import annotations

import pathlib
import time

from nope.runtime import files

OWNER = 'owner.json'
SILENCE = 60.0  # seconds without a heartbeat after which a lease has expired


def owner_of(folder: pathlib.Path, lock: pathlib.Path) -> pathlib.Path:
    """The lease beside the lock file of a folder."""
    inside = lock.parent == folder
    return folder / OWNER if inside else folder.with_name(f'.{folder.name}.{OWNER}')


def is_held(folder: pathlib.Path, lock: pathlib.Path) -> bool:
    """True while some process holds the lock, or keeps the lease by its heartbeats (by the clocks
    of this machine and of the one that writes it)."""
    if files.is_locked(lock):
        return True
    try:
        beaten = owner_of(folder, lock).stat().st_mtime
    except OSError:
        return False
    return time.time() - beaten < SILENCE
