"""Checkpoints in a bucket: saved, read, found damaged and set aside; a command that is killed.

Against an emulator of Google's storage, where it and the `gcs` extra are installed
(pip install gcp-storage-emulator).
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.checkpoints import bucket
from tests.distributed.command_test import losses
from tests.experiments import run_test

pytest.importorskip('gcp_storage_emulator')
pytest.importorskip('gcsfs')

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = """
import json
from etils import epath
from tests.checkpoints import manager_test
from nope.checkpoints.manager import Checkpoints

def open_there():
    return Checkpoints('gs://bucket/work/run', manager_test.IDENTITY)

with open_there() as checkpoints:
    for step in (1, 2):
        checkpoints.save(step, manager_test.arrays_at(step), {'examples': step})
found = []
with open_there() as checkpoints:
    for step in (2, 1):
        restored = checkpoints.restore(manager_test.arrays_at(0))
        manager_test.assert_is(restored, step)
        found.append([checkpoints.steps(), restored.data])
        document = epath.Path('gs://bucket/work/run/2/data/metadata')
        if step == 2:
            document.write_text(document.read_text().replace('2', '3'))
aside = [path.name for path in epath.Path('gs://bucket/work/damaged').iterdir()]
print(json.dumps([found, aside]))
"""


@pytest.fixture(scope='module')
def there() -> Iterator[dict[str, str]]:
    with bucket.running() as environment:
        yield os.environ | environment


def test_a_damaged_checkpoint_in_a_bucket_is_set_aside(there) -> None:
    ended = subprocess.run(
        [sys.executable, '-c', SCRIPT],
        cwd=ROOT, env=there, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    found, aside = json.loads(ended.stdout.strip().splitlines()[-1])
    assert found == [[[1, 2], {'examples': 2}], [[1], {'examples': 1}]]
    assert aside == ['2']


@pytest.mark.slow
def test_a_killed_command_goes_on_from_the_bucket(there, tmp_path) -> None:
    text, here, begun = (tmp_path / name for name in ('text', 'here', 'begun'))
    text.mkdir()
    run_test.write_texts(text)
    assert run_test.run('fig4.py:quick', here, text).returncode == 0
    remote = run_test.command(
        'fig4.py:quick', begun, text, '--config.compute.checkpoints=gs://bucket/studies'
    )
    process = subprocess.Popen(remote, cwd=ROOT, env=there, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while last_step(begun) <= 20 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, 'it was to be killed in its training'
    ended = subprocess.run(remote, cwd=ROOT, env=there, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert 'going on from step' in ended.stderr
    assert losses(begun) == losses(here)
    assert not list(begun.glob('runs/*/checkpoints')), 'they are in the bucket alone'
    assert (begun / 'figures' / 'fig4' / 'fig4.png').stat().st_size > 0


def last_step(workdir: pathlib.Path) -> int:
    """The last in a training's log. Past that of the second checkpoint the first one is whole."""
    logs = [path.read_text().splitlines() for path in workdir.glob('runs/*/metrics.jsonl')]
    return max((json.loads(rows[-1])['step'] for rows in logs if rows), default=0)
