"""A training on the accelerator of this machine, stopped and killed: it ends as undisturbed.

    JAX_PLATFORMS=cuda,cpu python -m pytest -m device tests/faults/device_test.py    # or tpu,cpu

In a process of its own, which leaves the accelerator to the trainings. NOPE_DEVICE_TESTS=cpu tries
it where there is none.
"""

from __future__ import annotations

import os
import pathlib
import signal

import pytest

from nope.training import metrics
from tests.faults import harness
from tests.faults.faults_test import assert_as_if_nothing_happened

PLATFORMS = os.environ.get('JAX_PLATFORMS', 'cpu')
ON_CPU, ON_GPU = PLATFORMS == 'cpu', PLATFORMS.startswith(('cuda', 'gpu'))
# Else the gradient of the embedding adds in an order of its own each time.
FLAGS = '--xla_gpu_exclude_nondeterministic_ops=true' if ON_GPU else ''
pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(
        ON_CPU and os.environ.get('NOPE_DEVICE_TESTS') != 'cpu',
        reason='JAX has no accelerator here; JAX_PLATFORMS=cuda,cpu or tpu,cpu names one',
    ),
]


def test_a_stop_and_a_kill_change_no_bit(tmp_path: pathlib.Path) -> None:
    """SIGTERM in the first attempt, SIGKILL in the second, each after a step of its own."""
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    ended = harness.finish(harness.start(whole, platforms=PLATFORMS, flags=FLAGS))
    assert ended.status == 0, ended.errors

    first = harness.start(broken, platforms=PLATFORMS, flags=FLAGS)
    harness.wait_for(first, lambda: bool(harness.committed(broken)), 180)
    first.send_signal(signal.SIGTERM)
    stopped = harness.finish(first)
    assert stopped.status == 143, stopped.errors
    saved = harness.committed(broken)[-1]

    second = harness.start(broken, platforms=PLATFORMS, flags=FLAGS)
    killed = harness.kill_when(second, lambda: harness.committed(broken)[-1] > saved, 180)
    assert killed.status == -signal.SIGKILL, killed.errors
    assert killed.start == saved < harness.committed(broken)[-1]

    last = harness.finish(harness.start(broken, platforms=PLATFORMS, flags=FLAGS))
    assert last.status == 0, last.errors
    assert last.start is not None and saved < last.start < 60
    assert_as_if_nothing_happened(broken, whole)
    losses = [{row['step']: row['loss'] for row in metrics.read(f)} for f in (broken, whole)]
    assert losses[0] == losses[1]
