"""The host's memory: what is freed can be used again, and goes back to the system."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any

_M_ARENA_MAX = -8  # of glibc's malloc.h


def few_arenas() -> None:
    """One arena of malloc for each processor, where the C library is glibc; call it first.

    glibc would make eight, and each of the hundred threads of XLA and Orbax takes one. What is
    freed is found again by the threads of that arena alone, and of a page in part use nothing goes
    back, so a process that trains and measures in turn grows without holding more. Leaves alone
    what MALLOC_ARENA_MAX or GLIBC_TUNABLES set. Imports nothing heavy.
    """
    tunables = os.environ.get('GLIBC_TUNABLES', '')
    if 'MALLOC_ARENA_MAX' in os.environ or 'glibc.malloc.arena_max' in tunables:
        return
    _glibc('mallopt')(_M_ARENA_MAX, max(2, _processors()))


def give_back() -> None:
    """Returns the host's freed memory to the system, where the C library can (glibc).

    After a training or an evaluation some hundred megabytes that the next one may not find.
    """
    _glibc('malloc_trim')(0)


@functools.cache
def _glibc(name: str) -> Callable[..., Any]:
    """The function of glibc; one that does nothing where it is another C library."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018
        return getattr(libc, name)
    except (AttributeError, OSError, TypeError):
        return lambda *_: 0


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
