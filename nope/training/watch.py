"""Watchdog of a run's steps: logs slow steps, dumps all stacks when a step hangs, and ends several
processes that hang for good."""

from __future__ import annotations

import faulthandler
import logging
import pathlib
import statistics
import threading
import time
from collections import deque

from nope.runtime import ending, processes

log = logging.getLogger(__name__)

REMEMBERED = 101  # steps whose median is the usual time
LEARNING = 10  # steps before one is called slow
LOST = 6  # times `hang_seconds` after which several processes are ended


class Watch:
    """Watchdog thread that is told of every step.

    slow: a step that takes this many times the median is logged. hang_seconds: after this long
    without a step the stacks of all threads are written to `stacks-PROCESS.txt` in `folder`, and
    the log says so. After LOST times as long several processes end, with the status of a missing
    process, so that a launcher that restarts them does so. A machine that is there and does not
    answer may never come. One process alone goes on waiting.
    """

    def __init__(self, folder: pathlib.Path, *, slow: float, hang_seconds: float) -> None:
        self._path = folder / f'stacks-{processes.index()}.txt'
        self._slow, self._hang_seconds = slow, hang_seconds
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._last = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name='watch', daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def step(self, number: int, *, usual: bool = True, data_seconds: float = 0.0) -> None:
        """Notes the end of a step. usual: False for a step that compiled or saved, which is not
        compared. data_seconds: the part of it spent waiting for examples."""
        now = time.monotonic()
        taken, self._last = now - self._last, now
        if not usual:
            return
        median = statistics.median(self._times) if len(self._times) >= LEARNING else None
        if median is not None and taken > self._slow * median:
            log.warning(
                '%sstep %d took %.2f s, %.1f times the median; %.2f s of it was waiting for '
                'examples',
                *(_who(), number, taken, taken / median, data_seconds),
            )
        self._times.append(taken)

    def _look(self) -> None:
        told = None
        while not self._over.wait(min(self._hang_seconds / 4, 5.0)):
            silent = time.monotonic() - self._last
            if silent >= LOST * self._hang_seconds and processes.count() > 1:
                ending.leave(
                    f'{_who()}no step for {silent:.0f} s, {LOST} times compute.hang_seconds; where '
                    'the threads were is in the stacks-PROCESS.txt of the run'
                )
            if silent < self._hang_seconds or told == self._last:
                continue
            told = self._last
            log.error(
                '%sno step for %.0f s; the stacks of all threads go to %s',
                *(_who(), silent, self._path),
            )
            # In a thread of its own: the storage may be what hangs.
            threading.Thread(target=self._dump, args=[silent], name='stacks', daemon=True).start()

    def _dump(self, silent: float) -> None:
        try:
            with self._path.open('a') as file:
                file.write(f'{time.strftime("%Y-%m-%d %H:%M:%S")}: {silent:.0f} s silent\n')
                faulthandler.dump_traceback(file, all_threads=True)
        except OSError:
            faulthandler.dump_traceback(all_threads=True)


def _who() -> str:
    """The process, where there are several."""
    return f'process {processes.index()}: ' if processes.count() > 1 else ''
