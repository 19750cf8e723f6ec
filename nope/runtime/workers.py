"""Worker processes, of a pool that another process has."""

from __future__ import annotations

import multiprocessing
import os
import threading
from typing import Any


def end_with_parent() -> None:
    """Ends this process with its parent, also with one that is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    if not parent.is_alive():
        os._exit(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(process: Any) -> None:
    process.join()
    os._exit(1)
