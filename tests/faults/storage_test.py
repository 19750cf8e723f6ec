"""Whole commands on storage that is full.

Each ends with one message and exit status 1 or 2. Started again with room, it has the results of a
command that nothing happened to, bit by bit.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

import pytest

from tests.experiments.run_test import write_texts
from tests.faults import results
from tests.faults.harness import ROOT
from tests.quick import QUICK

pytestmark = pytest.mark.faults


@pytest.fixture(scope='module')
def place() -> Iterator[pathlib.Path]:
    """A folder with texts in it."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / 'texts').mkdir()
    write_texts(folder / 'texts')
    yield folder
    shutil.rmtree(folder)


def run(place: pathlib.Path, folder: pathlib.Path, under: Sequence[str] = ()) -> tuple[int, str]:
    """Exit status of the command and what it says. under: words before it."""
    command = [*under, sys.executable, '-m', 'experiments.run']
    command += [f'--config=tests/faults/experiment.py:{place / "texts"}', f'--workdir={folder}']
    environment = {
        **os.environ,
        'JAX_PLATFORMS': 'cpu',
        'JAX_COMPILATION_CACHE_DIR': str(place / 'cache'),
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
        'XLA_FLAGS': QUICK,
        'PYTHONDONTWRITEBYTECODE': '1',
    }
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    return ended.returncode, ended.stderr


@pytest.fixture(scope='module')
def whole(place: pathlib.Path) -> pathlib.Path:
    """The folder of a command that nothing happened to."""
    status, said = run(place, place / 'whole')
    assert status == 0, said[-3000:]
    return place / 'whole'


def assert_goes_on(place: pathlib.Path, folder: pathlib.Path, whole: pathlib.Path) -> None:
    status, said = run(place, folder)
    assert status == 0, said[-3000:]
    assert results.differences(results.of(folder), results.of(whole)) == []


def assert_told(said: str, *words: str) -> None:
    """One line tells the error, with one of the words, and no traceback is above or below it."""
    (line,) = [line for line in said.splitlines() if line.startswith('error: ')]
    assert any(word in line for word in words), line
    assert 'Traceback' not in said, said[-3000:]


@pytest.mark.parametrize(
    'options',
    [
        *('nr_inodes=3', 'nr_inodes=12', 'nr_inodes=22', 'nr_inodes=90', 'nr_inodes=165'),
        *('size=40k', 'size=700k', 'size=1200k'),
    ],
)
def test_a_full_inode_table_or_disk(place: pathlib.Path, whole: pathlib.Path, options: str) -> None:
    disk = place / 'disk'
    disk.mkdir(exist_ok=True)
    mount = ['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', str(disk)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip('no file system can be mounted here: it needs CAP_SYS_ADMIN')
    try:
        status, said = run(place, disk / 'work')
        assert status in (1, 2)
        assert_told(said, 'No space left on device')
        more = 'remount,nr_inodes=10000,size=500m'
        subprocess.run(['mount', '-o', more, str(disk)], check=True)
        assert_goes_on(place, disk / 'work', whole)
    finally:
        subprocess.run(['umount', '-l', str(disk)], check=False)


@pytest.mark.parametrize('size', [2000, 120_000])
def test_files_of_a_limited_size(
    place: pathlib.Path, whole: pathlib.Path, tmp_path: pathlib.Path, size: int
) -> None:
    """RLIMIT_FSIZE, by which a write fails with EFBIG in the middle of a file."""
    status, said = run(place, tmp_path / 'work', ['prlimit', f'--fsize={size}'])
    assert status in (1, 2)
    assert_told(said, 'File too large')
    assert_goes_on(place, tmp_path / 'work', whole)
