"""Goodput: seconds of a run by activity, over all attempts."""

from __future__ import annotations

import contextlib
import logging
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax

from nope.checkpoints.errors import UnwritableError
from nope.runtime import processes
from nope.runtime.files import read_object, write_json

log = logging.getLogger(__name__)

NAME = 'goodput.json'


class Goodput:
    """Seconds by activity over all attempts at a run or an evaluation, in its `goodput.json`.

    Before the first step all is `start`. The first step of each length, and the first monitored
    one, is `compile`. Waiting for examples is `data`. A save that blocks the steps is `checkpoint`.
    Then there are `step`, `evaluation`, and `other`, the rest. Steps that an attempt repeats count
    again; time after the last checkpoint before a kill does not count. A `with` block writes the
    file at its end.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._path = folder / NAME
        known: dict[str, Any] = {'attempts': 0, 'steps': 0, 'seconds': {}}  # of earlier attempts
        try:
            known = read_object(self._path) or known
        except (OSError, ValueError) as error:  # which does not end a run
            log.warning('%s; counting anew', error)
        self._attempts, self._before = known['attempts'] + 1, known
        self._seconds: dict[str, float] = {}
        self._steps = 0
        self._began = time.monotonic()

    def __enter__(self) -> Goodput:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Writes the file, but for errors of storage: another command may hold the folder now."""
        if error is None:
            self.write()
        elif not issubclass(error, OSError | UnwritableError):
            with contextlib.suppress(OSError):  # the other error is the one to tell
                self.write()

    @contextlib.contextmanager
    def time(self, what: str) -> Iterator[Callable[[], float]]:
        """Counts the time of a `with` block; yields a function that returns its seconds afterwards.

        A profiler trace shows the block by the same name.
        """
        began, taken = time.monotonic(), 0.0
        try:
            with jax.profiler.TraceAnnotation(what):
                yield lambda: taken
        finally:
            taken = time.monotonic() - began
            self._seconds[what] = self._seconds.get(what, 0.0) + taken

    def step_done(self) -> None:
        self._steps += 1

    def summary(self) -> dict[str, object]:
        """Attempts, steps, seconds by activity, and the share of all seconds that steps took."""
        total = time.monotonic() - self._began
        mine = self._seconds | {'other': max(total - sum(self._seconds.values()), 0.0)}
        old = self._before['seconds']
        seconds = {k: round(old.get(k, 0.0) + mine.get(k, 0.0), 3) for k in {*old, *mine}}
        spent = sum(seconds.values())
        return {
            'attempts': self._attempts,
            'steps': self._before['steps'] + self._steps,
            'seconds': dict(sorted(seconds.items())),
            'goodput': round(seconds.get('step', 0.0) / spent, 4) if spent else 0.0,
        }

    def write(self) -> None:
        """Writes the file, in the first process and with its times."""
        if processes.is_first():
            write_json(self._path, self.summary())
