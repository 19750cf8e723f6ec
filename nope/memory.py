"""Memory that nobody uses, back to the system."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def give_back() -> None:
    """Returns the host's freed memory to the system, where the C library can (glibc).

    Many threads allocate, each from an arena of its own, and what they free stays with the arenas:
    after a training or an evaluation some hundred megabytes that the next one may not find.
    """
    _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library
        return lambda _: 0
