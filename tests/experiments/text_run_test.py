"""The command on an evaluation of text: killed among its samples, it goes on behind them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nope import records
from tests.quick import QUICK

ROOT = pathlib.Path(__file__).parents[2]
OPTIONS = (
    '--config.model.layers=1',
    '--config.model.width=16',
    '--config.model.heads=2',
    '--config.model.kv_heads=1',
    '--config.model.mlp_width=16',
    '--config.train.length=64',
    '--config.train.batch_size=4',
    '--config.train.steps=4',
    '--config.train.warmup_steps=1',
    "--config.data.mixture=(('retrieval', 1.0),)",
    '--config.evaluation.batch_tokens=512',
)


def start(workdir: pathlib.Path) -> subprocess.Popen:
    command = [
        sys.executable,
        '-m',
        'experiments.run',
        '--config=configs/first_paper/fig8.py:quick',
    ]
    flags = f'{QUICK} {os.environ.get("XLA_FLAGS", "")}'
    environment = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags}
    return subprocess.Popen(
        [*command, f'--workdir={workdir}', *OPTIONS],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(workdir: pathlib.Path) -> list[str]:
    """Keys of the samples that are whole on the disk, in their order."""
    lines = [p.read_text().splitlines(True) for p in workdir.glob('records/*/samples.jsonl')]
    return [json.loads(line)['key'] for lines_ in lines for line in lines_ if line.endswith('\n')]


@pytest.fixture(scope='module')
def killed(tmp_path_factory) -> tuple[pathlib.Path, list[str]]:
    """A work folder whose evaluation was killed, and what it had finished."""
    workdir = tmp_path_factory.mktemp('work')
    process = start(workdir)
    deadline = time.monotonic() + 240
    while not finished(workdir) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    return workdir, finished(workdir)


def test_no_sample_is_lost_or_evaluated_twice(killed) -> None:
    workdir, before = killed
    process = start(workdir)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert pathlib.Path(out.strip().splitlines()[-1]).is_file()
    after = finished(workdir)
    (folder,) = workdir.glob('records/passkey-*')
    found = records.load(folder)
    assert before and after[: len(before)] == before
    assert len(after) == len(set(after)) == found['accuracy'].size * 10 > len(before)
    assert np.all((found['accuracy'] >= 0) & (found['accuracy'] <= 1))
    summary = json.loads((workdir / 'figures' / 'fig8' / 'summary.json').read_text())
    assert summary['runs'].keys() == {'alibi_passkey/seed0'}
