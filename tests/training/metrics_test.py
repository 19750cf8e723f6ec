from __future__ import annotations

import math
import os
import pathlib
import subprocess
import sys

import pytest

from nope.training import metrics
from nope.training.metrics import MetricsWriter


def write(folder: pathlib.Path, steps: range, resume_step: int = 0, loss: float = 1.0) -> None:
    writer = MetricsWriter(folder, resume_step)
    for step in steps:
        writer.write(step, {'loss': loss + step, 'grad_norm': 0.1})
    writer.close()


def test_rows_come_back_as_written(tmp_path: pathlib.Path) -> None:
    write(tmp_path, range(1, 4), loss=1 / 3)
    assert metrics.read(tmp_path) == [
        {'step': step, 'loss': 1 / 3 + step, 'grad_norm': 0.1} for step in (1, 2, 3)
    ]


def test_a_row_is_on_disk_once_written(tmp_path: pathlib.Path) -> None:
    writer = MetricsWriter(tmp_path, 0)
    writer.write(1, {'loss': 2.0})
    assert metrics.read(tmp_path) == [{'step': 1, 'loss': 2.0}]
    writer.close()


def test_a_folder_without_metrics_has_no_rows(tmp_path: pathlib.Path) -> None:
    assert metrics.read(tmp_path) == []


def test_rows_after_the_resume_step_are_dropped(tmp_path: pathlib.Path) -> None:
    write(tmp_path, range(1, 6))
    write(tmp_path, range(4, 7), resume_step=3, loss=100.0)
    rows = metrics.read(tmp_path)
    assert [row['step'] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row['loss'] for row in rows] == [2, 3, 4, 104, 105, 106]


def test_a_line_cut_short_by_a_kill_is_left_out(tmp_path: pathlib.Path) -> None:
    write(tmp_path, range(1, 4))
    path = tmp_path / metrics.JSONL
    path.write_bytes(path.read_bytes()[:-9])
    assert [row['step'] for row in metrics.read(tmp_path)] == [1, 2]
    write(tmp_path, range(3, 5), resume_step=2)
    assert [row['step'] for row in metrics.read(tmp_path)] == [1, 2, 3, 4]
    path.write_bytes(b'[1]\n{"loss": 1}\n\x00\xff\xfe\n' + path.read_bytes())
    assert [row['step'] for row in metrics.read(tmp_path)] == [1, 2, 3, 4]


def test_values_that_are_not_finite_are_json(tmp_path: pathlib.Path) -> None:
    writer = MetricsWriter(tmp_path, 0)
    writer.write(1, {'loss': math.nan, 'grad_norm': math.inf})
    writer.close()
    assert (
        tmp_path / metrics.JSONL
    ).read_text() == '{"step": 1, "loss": "nan", "grad_norm": "inf"}\n'


def test_an_event_file_is_written(tmp_path: pathlib.Path) -> None:
    write(tmp_path, range(1, 3))
    assert [p.stat().st_size > 0 for p in (tmp_path / 'tensorboard').iterdir()] == [True]


def test_pytorch_is_not_imported_and_can_be_later(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'torch.py').write_text('print("torch was imported")')
    script = (
        'import sys, nope.training.metrics\n'
        'print("built", "torch" in sys.modules)\n'
        'import torch\n'
        'from nope.training.metrics import MetricsWriter'
    )
    path = os.pathsep.join([str(tmp_path), str(pathlib.Path(__file__).parents[2])])
    result = subprocess.run(
        [sys.executable, '-c', script],
        env={**os.environ, 'PYTHONPATH': path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == ['built False', 'torch was imported']


def test_a_last_line_cut_short_is_neither_reported_nor_kept(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, range(1, 4))
    path = tmp_path / metrics.JSONL
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(2, last):  # by 1 its line end alone is missing
        path.write_bytes(whole[:-cut])
        assert [row['step'] for row in metrics.read(tmp_path)] == [1, 2]
        write(tmp_path, range(3, 4), resume_step=2)
        assert path.read_bytes() == whole
    assert not caplog.text


@pytest.mark.parametrize('name', ['metrics.jsonl', 'tensorboard'])
def test_a_disk_that_fails_ends_the_writing_with_the_files_name(
    tmp_path: pathlib.Path, name: str
) -> None:
    """At a row or at the end, and neither later, nor by waiting for a thread that is no more."""
    limited = f"""
import pathlib, resource
from nope.training import metrics
metrics.FLUSH_SECONDS = 0.0 if {name == 'tensorboard'} else 1e9
values = {{str(i): 0.0 for i in range({100 if name == 'tensorboard' else 1})}}
writer = metrics.MetricsWriter(pathlib.Path({str(tmp_path)!r}), 0)
if {name == 'tensorboard'}:  # the event file alone meets the limit
    writer._file.close()
    writer._file = open('/dev/null', 'w')
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, -1))
try:
    for step in range(1, 200):
        writer.write(step, values)
    writer.close()
except OSError as error:
    print('told', error)
"""
    ended = subprocess.run(
        [sys.executable, '-c', limited], capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == f"told [Errno 27] File too large: '{tmp_path / name}'\n", ended.stderr
    assert 'Traceback' not in ended.stderr
