"""Messages: once a process, and without control characters."""

from __future__ import annotations

import functools
import logging

log = logging.getLogger(__name__)


@functools.cache
def say(level: int, text: str) -> None:
    log.log(level, '%s', text)


def printable(text: str) -> str:
    """A text of a file that others made, whose control characters are escaped."""
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
