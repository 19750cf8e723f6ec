"""Problems of a work folder: what failed, is missing, stale or damaged, or left out here."""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

# What reading files that people or faults may have changed raises.
UNFIT = (
    *(ArithmeticError, AttributeError, LookupError, OSError, RecursionError),
    *(SyntaxError, TypeError, ValueError, struct.error, zlib.error),
)


class Problem(NamedTuple):
    """kind: 'failed', 'damaged', 'missing', 'stale', 'unfinished' or 'left out'. file: relative to
    the work folder."""

    kind: str
    file: str
    what: str


@contextlib.contextmanager
def noted(problems: list[Problem], file: str) -> Iterator[None]:
    """`with` block whose errors of reading become a row of `problems` about `file`."""
    try:
        yield
    except UNFIT as error:
        named = isinstance(error, ValueError | OSError) and type(error) is not UnicodeDecodeError
        what = str(error) if named else f'{type(error).__name__}: {error}'
        problems.append(Problem('damaged', file, what[:500]))
