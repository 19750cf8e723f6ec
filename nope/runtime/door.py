"""Entrance of a command: what a user's environment may not change, before anything is imported.

Imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping

# Settings of JAX under which records would be of other numbers, and have the same names: each with
# the values that change nothing.
USUAL: Mapping[str, tuple[str, ...]] = {
    'JAX_ENABLE_X64': ('', '0', 'false'),
    'JAX_THREEFRY_PARTITIONABLE': ('', '1', 'true'),
    'JAX_DEFAULT_PRNG_IMPL': ('', 'threefry2x32'),
    'JAX_RANDOM_SEED_OFFSET': ('', '0'),
}


class _Lasting(io.TextIOWrapper):
    """A stream that stays open where nobody reads it any more: what is said is lost."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def enter() -> None:
    """Prepares this process and those that it starts; the first call of a program.

    What cannot be said in the terminal's encoding is escaped. Nothing fails because the reader of
    stderr has gone, as a lost connection leaves it. Settings of JAX that change results are left
    out, with a line. Matplotlib draws into files, whatever a notebook asks for.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors='backslashreplace')
    if isinstance(sys.stderr, io.TextIOWrapper) and not isinstance(sys.stderr, _Lasting):
        sys.stderr = _Lasting(
            sys.stderr.buffer, sys.stderr.encoding, 'backslashreplace', line_buffering=True
        )
    for name, usual in USUAL.items():
        value = os.environ.pop(name, '')
        if value.lower() not in usual:
            print(f'{name}={value} is left out: results would be others', file=sys.stderr)
    os.environ['MPLBACKEND'] = 'agg'
