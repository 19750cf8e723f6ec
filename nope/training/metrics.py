"""Training metrics as files: JSON lines for programs, event files for TensorBoard."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import pathlib
import sys
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
    from tensorboardX import SummaryWriter

JSONL = 'metrics.jsonl'

_log = logging.getLogger(__name__)


class MetricsWriter:
    """Writer of one row a step to `metrics.jsonl` and to an event file in the same folder.

    Rows of steps after `resume_step` are dropped when the writer opens: a run that goes on
    from a checkpoint writes them again, and each step stands in the file once. A file with lines
    that are no rows is kept, as `metrics.damaged-0.jsonl` (or the next number), and reported; a
    last line cut short, which a kill leaves, is just dropped.
    """

    def __init__(self, folder: pathlib.Path, resume_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / JSONL
        rows, damaged = parse(path)
        if damaged:
            aside = _keep(path)
            _log.warning(
                '%s has %d damaged lines, the first is line %d; the file is kept as %s, the other '
                'rows stay',
                *(path, len(damaged), damaged[0], aside),
            )
        kept = [row for row in rows if row['step'] <= resume_step]
        partial = path.with_suffix('.partial')
        partial.write_text(''.join(json.dumps(row) + '\n' for row in kept))
        partial.rename(path)
        self._file = path.open('a', buffering=1)
        self._events = SummaryWriter(
            str(folder / 'tensorboard'), purge_step=resume_step + 1, flush_secs=30
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._file.write(json.dumps({'step': step, **values}) + '\n')
        for name, value in values.items():
            self._events.add_scalar(name, value, step)

    def close(self) -> None:
        self._file.close()
        self._events.close()


def read(folder: pathlib.Path) -> list[dict[str, Any]]:
    """Rows of a run's `metrics.jsonl`, without a last line cut short by a kill and without damaged
    lines, which are reported when the run goes on."""
    rows, _ = parse(folder / JSONL)
    return rows


def parse(path: pathlib.Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows of the file, and the numbers, from 1, of its lines that are none; nothing for no file. A
    last line without its end is no damage."""
    rows: list[dict[str, Any]] = []
    damaged = []
    lines = path.read_bytes().split(b'\n') if path.exists() else [b'']
    for number, line in enumerate(lines, 1):
        row = _row(line)
        if row is not None:
            rows.append(row)
        elif number < len(lines):
            damaged.append(number)
    return rows, damaged


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and type(row.get('step')) is int else None


def _keep(path: pathlib.Path) -> pathlib.Path:
    """A copy of a damaged file beside it, under a name of its own."""
    names = (path.with_name(f'{path.stem}.damaged-{i}{path.suffix}') for i in itertools.count())
    aside = next(name for name in names if not name.exists())
    files.write_bytes(aside, path.read_bytes())
    return aside
