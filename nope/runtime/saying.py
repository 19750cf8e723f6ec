"""Messages that a process logs once."""

from __future__ import annotations

import functools
import logging

log = logging.getLogger(__name__)


@functools.cache
def say(level: int, text: str) -> None:
    log.log(level, '%s', text)
