"""Entrance of a command: what a user's environment may not change, before anything is imported.

Imports nothing heavy.
"""

from __future__ import annotations

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
}


def enter() -> None:
    """Prepares this process and those that it starts; the first call of a program.

    What cannot be said in the terminal's encoding is escaped. Settings of JAX that change results
    are left out, with a line. Matplotlib draws into files, whatever a notebook asks for.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')
    for name, usual in USUAL.items():
        value = os.environ.pop(name, '')
        if value.lower() not in usual:
            print(f'{name}={value} is left out: results would be others', file=sys.stderr)
    os.environ['MPLBACKEND'] = 'agg'
