"""Huge pages for the large arrays of the CPU backend.

XLA takes the scratch memory of a step from malloc and gives it back after it. Above some tens
of megabytes malloc maps it afresh every time, and the kernel hands it out in pages of 4 KiB,
each with a fault: 30,000 faults and 50 of 120 milliseconds for a step of a million parameters.
With transparent huge pages there are 500 times fewer. On many systems memory must ask for them;
glibc asks where the tunable `glibc.malloc.hugetlb=1` was set before the process started.

Imports nothing heavy: call it first.
"""

from __future__ import annotations

import os
import pathlib
import sys

_TUNABLE = 'glibc.malloc.hugetlb'
_POLICY = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')


def restart_with_huge_pages() -> None:
    """Runs this very command again with huge pages, where that helps; else does nothing.

    Replaces the process (same process id, arguments and environment), so it belongs at the
    start of a program, before threads and open files. Only on Linux with glibc 2.35 or newer,
    only where the kernel gives huge pages to those who ask, and never twice.
    """
    tunables = os.environ.get('GLIBC_TUNABLES', '')
    if _TUNABLE in tunables or not _must_ask() or _glibc() < (2, 35):
        return
    tunables = ':'.join([*filter(None, [tunables]), f'{_TUNABLE}=1'])
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [sys.executable, *sys.orig_argv[1:]]
    os.execve(sys.executable, arguments, {**os.environ, 'GLIBC_TUNABLES': tunables})


def _must_ask() -> bool:
    """Whether the kernel gives huge pages to memory that asks, and to no other."""
    try:
        return '[madvise]' in _POLICY.read_text()
    except OSError:
        return False


def _glibc() -> tuple[int, ...]:
    """Version of the C library; () where it is not glibc."""
    try:
        name, _, version = (os.confstr('CS_GNU_LIBC_VERSION') or '').partition(' ')
        return tuple(int(part) for part in version.split('.')) if name == 'glibc' else ()
    except (AttributeError, OSError, ValueError):
        return ()
