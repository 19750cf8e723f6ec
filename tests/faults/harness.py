"""Runs `worker.py` and breaks things in between."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]


class Ended(NamedTuple):
    """start: the step it went on from, None where it did not come so far."""

    status: int
    start: int | None
    errors: str


def start(
    folder: pathlib.Path, mesh: str = '', devices: int = 1, platforms: str = 'cpu', flags: str = ''
) -> subprocess.Popen:
    """devices: of a CPU. platforms, flags: of JAX and XLA."""
    flags = f'{flags} --xla_force_host_platform_device_count={devices}'
    environment = {**os.environ, 'JAX_PLATFORMS': platforms, 'XLA_FLAGS': flags.strip()}
    return subprocess.Popen(
        [sys.executable, '-m', 'tests.faults.worker', str(folder), mesh],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen, seconds: float = 300) -> Ended:
    try:
        out, errors = process.communicate(timeout=seconds)
    finally:
        process.kill()
    starts = [json.loads(line)['start'] for line in out.splitlines() if line.startswith('{')]
    return Ended(process.returncode, starts[0] if starts else None, errors)


def run(folder: pathlib.Path, mesh: str = '', devices: int = 1) -> Ended:
    return finish(start(folder, mesh, devices))


def wait_for(process: subprocess.Popen, ready: Callable[[], bool], seconds: float) -> None:
    """Until `ready()`, the end of the process, or so many seconds."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and not ready() and time.monotonic() < deadline:
        time.sleep(0.001)


def kill_when(process: subprocess.Popen, ready: Callable[[], bool], seconds: float = 120) -> Ended:
    """SIGKILL once `ready()`; it ends by itself where it is faster."""
    wait_for(process, ready, seconds)
    process.send_signal(signal.SIGKILL)
    return finish(process)


def saving(folder: pathlib.Path) -> bool:
    """Whether a checkpoint is there that is not whole."""
    return any('tmp' in path.name for path in (folder / 'checkpoints').iterdir())


def committed(folder: pathlib.Path) -> list[int]:
    """Steps of whole checkpoints, as the folder's names say."""
    checkpoints = folder / 'checkpoints'
    names = [path.name for path in checkpoints.iterdir()] if checkpoints.exists() else []
    return sorted(int(name) for name in names if name.isdigit())


def files_of(checkpoint: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in checkpoint.rglob('*') if path.is_file())


def final(folder: pathlib.Path) -> dict[str, np.ndarray]:
    with np.load(folder / 'final.npz') as arrays:
        return dict(arrays)


def examples(folder: pathlib.Path) -> dict[int, set[str]]:
    """Digests of the examples by step: one each, however often the step was made."""
    found: dict[int, set[str]] = {}
    for line in (folder / 'examples.jsonl').read_text().splitlines():
        row = json.loads(line)
        found.setdefault(row['step'], set()).add(row['examples'])
    return found
