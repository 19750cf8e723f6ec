"""Kills, damage, full disks, other meshes: nothing wrong is ever restored silently.

Every case ends with the state of a run that nothing happened to: bitwise on the same devices, to
rounding on others, with the same examples at every step:

    tools/test -m faults tests/faults/faults_test.py

`kills_test` kills at every moment of a training.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pytest

from nope.training import metrics
from tests.distributed import launching
from tests.faults import harness

pytestmark = pytest.mark.faults

DAMAGES = 6


@pytest.fixture(scope='module')
def whole(tmp_path_factory) -> pathlib.Path:
    """A run that nothing happened to."""
    folder = tmp_path_factory.mktemp('whole')
    ended = harness.run(folder)
    assert ended.status == 0, ended.errors
    assert ended.start == 0
    return folder


def assert_as_if_nothing_happened(folder: pathlib.Path, whole: pathlib.Path) -> None:
    found, expected = harness.final(folder), harness.final(whole)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    assert harness.examples(folder) == harness.examples(whole)


def assert_same_to_rounding(folder: pathlib.Path, whole: pathlib.Path) -> None:
    """Losses within 1e-5, parameters, in which Adam enlarges roundings of nothing, within 1e-4; the
    same examples at every step."""
    ours, theirs = ({row['step']: row['loss'] for row in metrics.read(f)} for f in (folder, whole))
    assert ours.keys() == theirs.keys()
    for step, loss in theirs.items():
        assert abs(ours[step] - loss) <= 1e-5
    found, expected = harness.final(folder), harness.final(whole)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-4, err_msg=name)
    assert harness.examples(folder) == harness.examples(whole)


def damage(path: pathlib.Path, kind: str, draw: random.Random) -> None:
    content = bytearray(path.read_bytes())
    if kind == 'delete':
        path.unlink()
    elif kind == 'truncate':
        path.write_bytes(content[: draw.randrange(len(content))] if content else b'')
    else:
        for _ in range(8):
            if content:
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)


@pytest.fixture(scope='module')
def stopped(tmp_path_factory) -> pathlib.Path:
    """A run that was told to stop halfway."""
    folder = tmp_path_factory.mktemp('stopped') / 'run'
    process = harness.start(folder)
    while len(harness.committed(folder)) < 3 and process.poll() is None:
        time.sleep(0.001)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    ended = harness.finish(process)
    assert ended.status == 143, ended.errors
    assert time.monotonic() - began < 20
    return folder


@pytest.mark.parametrize('kind', ['truncate', 'flip', 'delete'])
@pytest.mark.parametrize('number', range(DAMAGES // 3))
def test_damage_to_the_newest_checkpoint(
    kind: str, number: int, stopped: pathlib.Path, whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Either it makes no difference to what is restored, or the checkpoint before is taken."""
    draw = random.Random(f'{kind} {number}')
    folder = tmp_path / 'run'
    shutil.copytree(stopped, folder)
    steps = harness.committed(folder)
    files = harness.files_of(folder / 'checkpoints' / str(steps[-1]))
    damaged = draw.choice(files)
    damage(damaged, kind, draw)
    ended = harness.run(folder)
    print(f'{kind} {damaged.relative_to(folder)}: from step {ended.start} of {steps}')
    assert ended.status == 0, ended.errors
    assert ended.start in steps[-2:]
    if ended.start != steps[-1]:
        assert f'checkpoint of step {steps[-1]} is damaged, set aside' in ended.errors
    assert_as_if_nothing_happened(folder, whole)


def test_all_checkpoints_damaged_is_an_error_that_keeps_them(
    stopped: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / 'run'
    shutil.copytree(stopped, folder)
    steps = harness.committed(folder)
    for step in steps:
        for path in harness.files_of(folder / 'checkpoints' / str(step) / 'arrays'):
            damage(path, 'truncate', random.Random(step))
    ended = harness.run(folder)
    assert ended.status == 3
    assert 'none of the checkpoints of steps' in ended.errors
    assert sorted(int(p.name) for p in (folder / 'checkpoints').iterdir()) == steps
    assert not (folder / 'damaged').exists()


@pytest.mark.parametrize('meshes', [('', 'fsdp=8', 'data=2,tensor=4'), ('fsdp=2,context=4', '')])
def test_another_mesh_after_each_stop(
    meshes: tuple[str, ...], whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for mesh in meshes[:-1]:
        process = harness.start(tmp_path, mesh, devices=8 if mesh else 1)
        known = len(harness.committed(tmp_path))
        while len(harness.committed(tmp_path)) <= known and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        ended = harness.finish(process)
        assert ended.status == 143, ended.errors
    ended = harness.run(tmp_path, meshes[-1], devices=8 if meshes[-1] else 1)
    assert ended.status == 0, ended.errors
    assert ended.start > 0
    assert_same_to_rounding(tmp_path, whole)


def test_two_processes_killed_and_their_checkpoint_damaged(
    whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Each restores a part of the arrays; a part that one of them cannot read ends it for both."""
    asked = ['-m', 'tests.faults.worker', str(tmp_path), 'fsdp=2']
    started = launching.start(asked, 2, 1)
    while len(harness.committed(tmp_path)) < 3 and all(p.poll() is None for p in started):
        time.sleep(0.001)
    for process in started:
        process.send_signal(signal.SIGKILL)
    launching.finish(started)
    steps = harness.committed(tmp_path)
    folder = tmp_path / 'checkpoints' / str(steps[-1]) / 'arrays'
    for path in folder.rglob('ocdbt.process_1/d/*'):
        damage(path, 'truncate', random.Random(0))
    for status, out, errors in launching.finish(launching.start(asked, 2, 1), 300):
        assert status == 0, errors[-3000:]
        assert f'{{"start": {steps[-2]}}}' in out
    assert_same_to_rounding(tmp_path, whole)


def test_another_number_of_processes_after_each_kill(
    whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Two, one, four: each number goes on from the newest whole checkpoint of another, killed while
    it wrote the next, with the same examples."""
    asked = ['-m', 'tests.faults.worker', str(tmp_path), 'data=1,fsdp=None']
    for number in (2, 1):
        known = harness.committed(tmp_path)
        started = launching.start(asked, number, 1)
        while len({*harness.committed(tmp_path)} - {*known}) < 3 or not harness.saving(tmp_path):
            assert all(process.poll() is None for process in started)
            time.sleep(0.001)
        for process in started:
            process.send_signal(signal.SIGKILL)
        for _, out, errors in launching.finish(started):
            assert f'{{"start": {known[-1] if known else 0}}}' in out, errors[-3000:]
    steps = harness.committed(tmp_path)
    assert 0 < steps[-1] < harness.committed(whole)[-1]
    for status, out, errors in launching.finish(launching.start(asked, 4, 1), 300):
        assert status == 0, errors[-3000:]
        assert f'{{"start": {steps[-1]}}}' in out
    assert_same_to_rounding(tmp_path, whole)


@pytest.mark.parametrize('killed', [0, 1])
def test_the_death_of_one_process_ends_the_other(
    killed: int, whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """The first one's at once, another's once JAX has missed it; and nothing is lost."""
    asked = ['-m', 'tests.faults.worker', str(tmp_path), 'fsdp=2']
    started = launching.start(asked, 2, 1)
    while len(harness.committed(tmp_path)) < 3:
        assert all(process.poll() is None for process in started)
        time.sleep(0.001)
    started[killed].send_signal(signal.SIGKILL)
    began = time.monotonic()
    assert started[1 - killed].wait(timeout=200) != 0
    print(f'process {killed} killed; the other ended after {time.monotonic() - began:.1f} s')
    launching.finish(started)
    steps = harness.committed(tmp_path)
    for status, out, errors in launching.finish(launching.start(asked, 2, 1), 300):
        assert status == 0, errors[-3000:]
        assert f'{{"start": {steps[-1]}}}' in out
    assert_same_to_rounding(tmp_path, whole)


@contextlib.contextmanager
def small_disk(folder: pathlib.Path, mebibytes: int) -> Iterator[None]:
    """A file system of its own, in memory. Skips where it cannot be made."""
    folder.mkdir()
    options = f'size={mebibytes}m'
    made = subprocess.run(
        ['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', str(folder)], check=False
    )
    if made.returncode:
        pytest.skip('no file system can be mounted here')
    try:
        yield
    finally:
        subprocess.run(['umount', '-l', str(folder)], check=False)


def remount(folder: pathlib.Path, options: str) -> None:
    subprocess.run(['mount', '-o', f'remount,{options}', str(folder)], check=True)


def test_a_full_disk_ends_the_run_and_keeps_what_was_there(
    whole: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    disk = tmp_path / 'disk'
    with small_disk(disk, 10):
        ended = harness.run(disk / 'run')
        kept = harness.committed(disk / 'run')
        print(ended.errors[-500:])
        assert ended.status == 3
        assert 'could not be written' in ended.errors or 'No space left' in ended.errors
        assert kept
        remount(disk, 'size=200m')
        ended = harness.run(disk / 'run')
        assert ended.status == 0, ended.errors
        assert ended.start == kept[-1]
        assert_as_if_nothing_happened(disk / 'run', whole)
