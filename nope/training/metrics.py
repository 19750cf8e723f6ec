"""Training metrics as files: JSON lines for programs, event files for TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, cast

from nope.runtime import files


@contextlib.contextmanager
def _as_if_missing(module: str) -> Iterator[None]:
    """`with` block in which importing `module` fails, for packages that can do without it."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = cast(Any, None)  # importing it is an ImportError
    try:
        yield
    finally:
        del sys.modules[module]


# It asks for PyTorch to take tensors that nobody here gives it: seconds, and 180 MiB at least.
with _as_if_missing('torch'):
    from tensorboardX import summary
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto.event_pb2 import Event, SessionLog

JSONL = 'metrics.jsonl'
FLUSH_SECONDS = 30.0  # between two times that the event file is brought to disk


class MetricsWriter:
    """Writer of one row a step to `metrics.jsonl` and to an event file in the same folder.

    Rows of steps after `resume_step` are dropped when the writer opens: a run that goes on
    from a checkpoint writes them again, and each step stands in the file once.
    """

    def __init__(self, folder: pathlib.Path, resume_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / JSONL
        kept = [row for row in parse(path) if row['step'] <= resume_step]
        partial = path.with_suffix('.partial')
        with files.writing(path):
            partial.write_text(''.join(json.dumps(row) + '\n' for row in kept))
            partial.rename(path)
        self._path = path
        self._file = path.open('a', buffering=1)
        self._events = _EventFile(folder / 'tensorboard', resume_step + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Adds the row of a step. OSError, naming the file, where it cannot be written."""
        with files.writing(self._path):
            row = {name: json_number(value) for name, value in values.items()}
            self._file.write(json.dumps({'step': step, **row}) + '\n')
        self._events.write(step, values)

    def close(self) -> None:
        """OSError, naming the file, where what is left cannot be written."""
        try:
            with files.writing(self._path):
                self._file.close()
        finally:
            self._events.close()


def json_number(value: float) -> float | str:
    """A number as JSON has it: what is not finite by its name."""
    return value if math.isfinite(value) else str(value)


class _EventFile:
    """TensorBoard's file of a folder, written by the thread that has the values: the library's own
    thread would end at the first error of the disk, and who fills its queue would wait for ever.

    purge_step: TensorBoard forgets earlier files from this step on.
    """

    def __init__(self, folder: pathlib.Path, purge_step: int) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._flushed = time.monotonic()
        with files.writing(folder):
            self._writer = EventsWriter(str(folder / 'events'))
            self._add(Event(step=purge_step, file_version='brain.Event:2'))
            self._add(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        with files.writing(self._folder):
            for name, value in values.items():
                self._add(Event(step=step, summary=summary.scalar(name, value)))
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._writer.flush()
                self._flushed = time.monotonic()

    def close(self) -> None:
        with files.writing(self._folder):
            self._writer.close()

    def _add(self, event: Event) -> None:
        event.wall_time = time.time()
        self._writer.write_event(event)


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Rows of a run's `metrics.jsonl`."""
    spelled = ('nan', 'inf', '-inf')
    return [
        {name: float(value) if value in spelled else value for name, value in row.items()}
        for row in parse(folder / JSONL)
    ]


def parse(path: pathlib.Path) -> list[dict[str, Any]]:
    """Rows of steps in a file of JSON lines; none for no file. What a kill left of others is left
    out."""
    rows = (row for _, row in files.logged_rows(path) if row is not None)
    return [row for row in rows if isinstance(row.get('step'), int)]
