"""Log file for messages of libraries, whose tracebacks may be thousands of lines."""

from __future__ import annotations

import logging
import os
import pathlib

LIBRARIES = ('absl', 'asyncio')  # Orbax logs by absl, and reads and writes arrays by asyncio

log = logging.getLogger(__name__)


class LibraryLog(logging.FileHandler):
    """File that is begun, and named to the user, with the first message."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path, delay=True)
        self.setFormatter(logging.Formatter('%(asctime)s %(process)d %(name)s %(message)s'))

    def emit(self, record: logging.LogRecord) -> None:
        begun = self.stream is not None
        try:
            os.makedirs(os.path.dirname(self.baseFilename), exist_ok=True)
            super().emit(record)
        except OSError:  # the message is lost; a disk that is full ends the command by itself
            return
        if not begun:
            log.warning('libraries say more in %s', self.baseFilename)

    def handleError(self, record: logging.LogRecord) -> None:
        """Loses the message, as above."""


def collect(path: pathlib.Path) -> None:
    """Sends what libraries log from warnings on to a file, and no longer to stderr."""
    handler = LibraryLog(path)
    for name in LIBRARIES:
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        for old in [old for old in logger.handlers if isinstance(old, LibraryLog)]:
            logger.removeHandler(old)
        logger.addHandler(handler)
        logger.propagate = False
