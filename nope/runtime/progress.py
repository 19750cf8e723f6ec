"""Progress bars: live in a terminal, a line every twenty seconds in a log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from tqdm import tqdm


class _Bar(tqdm):
    """A bar whose time runs on evenly where the machine's clock is set: set back, a bar of tqdm
    would stand still until the old time comes again."""

    @property
    def _time(self) -> Callable[[], float]:
        return lambda: _OFFSET + time.monotonic()

    @_time.setter
    def _time(self, clock: object) -> None:
        """Clock that tqdm would set; left out."""


_OFFSET = time.time() - time.monotonic()  # tqdm's monitor compares with the clock


def bar(items: Any = None, **options: Any) -> tqdm:
    """A `tqdm` over `items` (or by hand, with `total`), updated as often as the reader wants."""
    if sys.stderr.isatty():
        where: dict[str, Any] = {'mininterval': 0.5, 'dynamic_ncols': True}
    else:
        where = {'mininterval': 20.0, 'ncols': 120}
    return _Bar(items, **{**where, **options})


class AboveBars(logging.StreamHandler):
    """Handler of log messages on stderr, each a line of its own where a bar is drawn."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(file=sys.stderr):
            super().emit(record)
