"""Host memory: malloc arenas, malloc_trim, transparent huge pages, the limit of address space.

XLA takes the scratch memory of a step from malloc and gives it back after it. Above some tens of
megabytes malloc maps memory afresh every time. The kernel gives it in pages of 4 KiB with a fault
each. A step of a million parameters has 30,000 faults. They take 50 of its 120 milliseconds. With
transparent huge pages there are 500 times fewer. On many systems memory must ask for them; glibc
asks where the tunable `glibc.malloc.hugetlb=1` was set before the process started.

Imports nothing heavy: `restart_with_huge_pages`, `few_arenas` and `check_address_space` come first
in a program.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import math
import os
import pathlib
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

from nope.runtime import processors

# Bytes that libraries and their threads map on two cores beside a model's arrays, most of them
# never touched: with 1.4 GiB there was no thread for a first checkpoint, with 1.7 all went well.
LEAST_ADDRESS_SPACE = 3 * 2**29

_TUNABLE = 'glibc.malloc.hugetlb'
_POLICY = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')
_M_ARENA_MAX = -8  # of glibc's malloc.h


def restart_with_huge_pages() -> None:
    """Runs this very command again with huge pages, if that helps.

    Replaces the process (same process id, arguments and environment), so it belongs at the
    start of a program, before threads and open files. Only on Linux with glibc 2.35 or newer,
    only where the kernel gives huge pages to those who ask, and never twice.
    """
    tunables = os.environ.get('GLIBC_TUNABLES', '')
    if _TUNABLE in tunables or not _must_ask() or _glibc_version() < (2, 35):
        return
    tunables = ':'.join([*filter(None, [tunables]), f'{_TUNABLE}=1'])
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, arguments, {**os.environ, 'GLIBC_TUNABLES': tunables})


def few_arenas() -> None:
    """One arena of malloc for each processor, where the C library is glibc; call it first.

    glibc would make eight, and each of the hundred threads of XLA and Orbax takes one. Only threads
    of the same arena find freed memory again, and pages in part use never go back. A process that
    trains and measures in turn would grow without holding more. Leaves alone what MALLOC_ARENA_MAX
    or GLIBC_TUNABLES set. Imports nothing heavy.
    """
    tunables = os.environ.get('GLIBC_TUNABLES', '')
    if 'MALLOC_ARENA_MAX' in os.environ or 'glibc.malloc.arena_max' in tunables:
        return
    _glibc('mallopt')(_M_ARENA_MAX, max(2, processors.usable()))


def check_address_space() -> None:
    """MemoryError, saying what to do, where a limit (RLIMIT_AS, `ulimit -v`) leaves less than
    LEAST_ADDRESS_SPACE: a library that gets no memory there ends the process, without an error."""
    limit = _address_space()
    if limit < LEAST_ADDRESS_SPACE:
        raise MemoryError(
            f'the address space is limited to {limit / 2**30:.1f} GiB (ulimit -v), and libraries '
            f'map {LEAST_ADDRESS_SPACE / 2**30:.1f} GiB without touching most of them. Accepted: '
            'more, or no limit; what is touched is limited by a cgroup, as systemd-run --scope -p '
            'MemoryMax=SIZE makes one'
        )


def of_host() -> float:
    """Bytes that arrays can have: the machine's memory, or what a limit of the address space
    (RLIMIT_AS) leaves beside LEAST_ADDRESS_SPACE."""
    there = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    return min(there, max(_address_space() - LEAST_ADDRESS_SPACE, 0))


def _address_space() -> float:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if limit == resource.RLIM_INFINITY else limit


@contextlib.contextmanager
def made_to_stay() -> Iterator[None]:
    """`with` block whose objects stay for good, as those of imports do.

    The garbage collector is off in it, and never looks at what is there at its end: of importing
    JAX, Flax and this project it would take a seventh.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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


def _must_ask() -> bool:
    """True where the kernel gives huge pages only to memory that asks for them (madvise)."""
    try:
        return '[madvise]' in _POLICY.read_text()
    except OSError:
        return False


def _glibc_version() -> tuple[int, ...]:
    """Version of the C library; () where it is not glibc."""
    try:
        name, _, version = (os.confstr('CS_GNU_LIBC_VERSION') or '').partition(' ')
        return tuple(int(part) for part in version.split('.')) if name == 'glibc' else ()
    except (AttributeError, OSError, ValueError):
        return ()
