"""Processors of this machine. Imports nothing heavy."""

from __future__ import annotations

import os


def usable() -> int:
    """Processors that this process may run on, as `taskset` or a scheduler allow."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1
