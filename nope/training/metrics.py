"""Training metrics as files: JSON lines for programs, event files for TensorBoard."""

from __future__ import annotations

import contextlib
import json
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast


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


class MetricsWriter:
    """Writer of one row a step to `metrics.jsonl` and to an event file in the same folder.

    Rows of steps after `resume_step` are dropped when the writer opens: a run that goes on
    from a checkpoint writes them again, and each step stands in the file once.
    """

    def __init__(self, folder: pathlib.Path, resume_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / JSONL
        kept = [row for row in read(folder) if row['step'] <= resume_step]
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
    """Rows of a run's `metrics.jsonl`; a last line cut short by a kill is left out."""
    path = folder / JSONL
    rows: list[dict[str, Any]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows
