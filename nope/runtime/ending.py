"""Exit of a failed command: within seconds, in all processes, with the cause.

Left alone the others would wait in a computation that the failed one never joins, until JAX misses
it: minutes later, and by aborting. One process alone would wait for the threads of a save that
cannot be written: five minutes or more.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection
from typing import Any

from nope.runtime import processes

KEY = 'nope/failed'
MISSING = 128 + signal.SIGABRT  # as where JAX misses a process
LOOK_SECONDS = 0.5  # between two looks
GRACE_SECONDS = 2.0  # for a process that fails at the same thing and says so itself
LEAVE_SECONDS = 5.0  # for threads to come to their end
LAST_SECONDS = 4.0  # that the first process, which holds the channel, stays longer than the others

_over = threading.Event()


class Failure(Exception):
    """Failure of a command: its exit status and its cause."""

    def __init__(self, status: int, why: object) -> None:
        super().__init__(str(why))
        self.status = status


def run(command: Callable[[], int], fine: Collection[int] = (0,)) -> int:
    """Runs `command` and returns its exit status; a Failure is printed and has its own status. For
    the end of a program: after a failure the process does not wait long for its threads.

    One process that fails, by an exception or a status outside of `fine`, ends all processes with
    its status. The ended ones print its number and reason.
    """
    expected = True
    try:
        status = command()
        failed = None if status in fine else Failure(status, f'exit status {status}')
    except Failure as failure:
        failed = failure
        print(f'error: {failure}', file=sys.stderr)
    except Exception as error:
        if not processes.joined():
            _leave_soon(1)
            raise
        traceback.print_exc()
        expected = False  # it may be that of a computation in which another process is missing
        failed = Failure(1, f'{type(error).__name__}: {error}')
    if failed is None:
        return status
    _over.set()
    if processes.joined():
        _end(_tell(failed), say=not expected)
    _leave_soon(failed.status)
    return failed.status


def watch() -> None:
    """Starts a thread that ends this process when another one has failed, even while this one waits
    for it at its own end. For `processes.start` to call."""
    if processes.joined():
        threading.Thread(target=_look, name='ending', daemon=True).start()


def leave(why: str) -> None:
    """Ends this process and all others with the status MISSING and `why` as the cause, whatever
    their threads wait for. For a thread that sees that the others hang."""
    _leave_soon(MISSING)  # whatever hangs of what follows
    try:
        print(f'error: {why}', file=sys.stderr)
    finally:  # whoever read that may be gone
        _over.set()
        _end(_tell(Failure(MISSING, why)), say=True)


def _look() -> None:
    while not _over.wait(LOOK_SECONDS):
        found = processes.noted(KEY)
        if found is not None:
            if not _over.wait(GRACE_SECONDS):
                _end(json.loads(found), say=True)
            return


def _tell(failed: Failure) -> dict[str, Any]:
    """First failure of all processes: this one, or the one that led to it."""
    mine = {'process': processes.index(), 'status': failed.status, 'why': str(failed)}
    return json.loads(processes.note(KEY, json.dumps(mine)))


def _leave_soon(status: int) -> None:
    """Ends this process if it has not ended by itself."""

    def leave() -> None:
        sys.stdout.flush()
        os._exit(status)

    timer = threading.Timer(LEAVE_SECONDS, leave)
    timer.daemon = True
    timer.start()


def _end(cause: dict[str, Any], say: bool) -> None:
    """Ends this process, whatever its threads wait for; says why where another is the cause."""
    try:
        if say and cause['process'] != processes.index():
            where = processes.describe(cause['process'])
            print(f'error: {where} has failed: {cause["why"]}', file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        logging.shutdown()
        if processes.is_first():
            time.sleep(LAST_SECONDS)
    finally:  # whoever read what it wrote may be gone
        os._exit(cause['status'])
