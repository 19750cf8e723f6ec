"""Worker processes, of a pool that another process has."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from typing import Any


def end_with_parent() -> None:
    """A parent that is killed takes this process along; Ctrl-C, which reaches all of a terminal's
    processes, is the parent's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    if not parent.is_alive():
        os._exit(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(process: Any) -> None:
    process.join()
    os._exit(1)
