from __future__ import annotations

import math
import os
import pathlib
import subprocess
import sys

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


def test_values_that_are_not_finite_are_kept(tmp_path: pathlib.Path) -> None:
    writer = MetricsWriter(tmp_path, 0)
    writer.write(1, {'loss': math.nan})
    writer.close()
    assert math.isnan(metrics.read(tmp_path)[0]['loss'])


def test_an_event_file_is_written(tmp_path: pathlib.Path) -> None:
    write(tmp_path, range(1, 3))
    assert [p.stat().st_size > 0 for p in (tmp_path / 'tensorboard').iterdir()] == [True]


def test_pytorch_is_not_imported_and_can_be_later(tmp_path: pathlib.Path) -> None:
    (tmp_path / 'torch.py').write_text('print("torch was imported")')
    script = (
        'import sys, experiments.build, experiments.execute\n'
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
