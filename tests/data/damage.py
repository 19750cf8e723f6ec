"""Damage to a file's bytes: cut short, or bytes behind the end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CUTS = 20


def cuts(data: bytes) -> Iterator[bytes]:
    """`data` without its last bytes, at 20 places from nothing to all but one."""
    for size in np.linspace(0, len(data) - 1, CUTS).astype(int):
        yield data[:size]


def trailed(data: bytes) -> Iterator[bytes]:
    """`data` with something behind its end."""
    yield from (data + more for more in (b'x', b'\n', b'trailing bytes', data[:10]))
