"""Allocations that fail in the middle of a command: one message, and the same results afterwards.

The failure is put into functions of NumPy and of this project: under a real limit of what a process
maps, libraries end it, or wait for ever for threads that cannot be made. Such a limit that is too
small is refused.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.experiments.run_test import write_texts
from tests.faults import results
from tests.faults.harness import ROOT
from tests.quick import QUICK

pytestmark = pytest.mark.faults

# MODULE, FUNCTION and the number of its call that finds no memory.
PROGRAM = """
import importlib, itertools, runpy, sys
module, function, number = sys.argv.pop(1).split(':')
owner = importlib.import_module(module)
*classes, name = function.split('.')
for each in classes:
    owner = getattr(owner, each)
whole, calls = getattr(owner, name), itertools.count(1)
def short(*args, **kwargs):
    if next(calls) == int(number):
        raise MemoryError('Unable to allocate 3.0 GiB')
    return whole(*args, **kwargs)
setattr(owner, name, short)
sys.argv[0] = 'experiments.run'
runpy.run_module('experiments.run', run_name='__main__', alter_sys=True)
"""


def run(
    place: pathlib.Path, folder: pathlib.Path, short: str = '', mib: int = 0, *fields: str
) -> tuple[int, str]:
    """Exit status of the command, and what it says. short: of `PROGRAM`. mib: of address space
    (`ulimit -v`), 0 for no limit. fields: --config.FIELD=VALUE."""
    program = ['-c', PROGRAM, short] if short else ['-m', 'experiments.run']
    command = [
        *(sys.executable, *program),
        f'--config=tests/faults/experiment.py:{place / "texts"}',
        f'--workdir={folder}',
        *fields,
    ]
    if mib:
        command = ['sh', '-c', f'ulimit -v {mib << 10}; exec "$@"', 'sh', *command]
    environment = {
        **os.environ,
        'JAX_PLATFORMS': 'cpu',
        'JAX_COMPILATION_CACHE_DIR': str(place / 'cache'),
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
        'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1',  # else it starts itself anew
        'XLA_FLAGS': QUICK,
    }
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600
    )
    return ended.returncode, ended.stderr


@pytest.fixture(scope='module')
def place(tmp_path_factory) -> pathlib.Path:
    """A folder with texts, and the work folder `whole` of a command that nothing happened to."""
    folder = tmp_path_factory.mktemp('memory')
    (folder / 'texts').mkdir()
    write_texts(folder / 'texts')
    status, said = run(folder, folder / 'whole')
    assert status == 0, said[-3000:]
    return folder


@pytest.mark.parametrize(
    ('what', 'short'),
    [
        ('preparing data', 'nope.data.prepare:_tokenise_part:1'),
        ('the checksums of a save', 'nope.checkpoints.contents:checksums:3'),
        ('a save', 'orbax.checkpoint:CheckpointManager.save:2'),
        ('an evaluation', 'nope.evals.positions:run:1'),
        ('records', 'numpy:savez:1'),
    ],
)
def test_memory_that_is_short(
    place: pathlib.Path, tmp_path: pathlib.Path, what: str, short: str
) -> None:
    status, said = run(place, tmp_path / 'work', short)
    assert status in (1, 2), (what, status, said[-2000:])
    (line,) = [line for line in said.splitlines() if line.startswith('error: ')]
    assert 'Unable to allocate 3.0 GiB' in line
    assert 'Traceback' not in said
    status, said = run(place, tmp_path / 'work')
    assert status == 0, said[-3000:]
    found, expected = results.of(tmp_path / 'work'), results.of(place / 'whole')
    assert results.differences(found, expected) == []


# Less than libraries take, and a model that what is left beside them is too little for.
SMALL, LARGE_MODEL = 1400, ('--config.model.width=4096', '--config.model.mlp_width=16384')


@pytest.mark.parametrize(
    ('mib', 'fields', 'why'),
    [(SMALL, (), 'ulimit -v'), (2048, LARGE_MODEL, 'need at least .* GiB on each device')],
)
def test_a_limit_of_the_address_space_that_is_too_small(
    place: pathlib.Path, tmp_path: pathlib.Path, mib: int, fields: tuple[str, ...], why: str
) -> None:
    """It is refused before anything is built, and what was saved before is gone on from."""
    status, _ = run(place, tmp_path / 'work', 'orbax.checkpoint:CheckpointManager.save:4')
    assert status == 1
    before = sorted(path for path in (tmp_path / 'work' / 'runs').rglob('*') if path.is_file())
    status, said = run(place, tmp_path / 'work', '', mib, *fields)
    (line,) = [line for line in said.splitlines() if line.startswith('error: ')]
    assert status == 2 and re.search(why, line) and 'Traceback' not in said
    found = sorted(path for path in (tmp_path / 'work' / 'runs').rglob('*') if path.is_file())
    assert found == before
    status, said = run(place, tmp_path / 'work')
    assert status == 0 and 'going on from step' in said, said[-3000:]
    assert results.differences(results.of(tmp_path / 'work'), results.of(place / 'whole')) == []


def test_a_checkpoint_that_memory_is_too_short_to_read_stays(
    place: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """It is not taken for a damaged one, and set aside for an older."""
    stop = 'orbax.checkpoint:CheckpointManager.save:4'
    status, _ = run(place, tmp_path / 'work', stop)
    assert status == 1
    (checkpoints,) = (tmp_path / 'work' / 'runs').glob('nope-*/checkpoints')
    kept = sorted(path.name for path in checkpoints.iterdir() if path.name.isdigit())
    assert kept
    read = 'nope.checkpoints.contents:Contents.read:1'
    status, said = run(place, tmp_path / 'work', read)
    assert status == 1
    assert 'cannot be read: there is not enough memory (Unable to allocate 3.0 GiB)' in said
    assert sorted(path.name for path in checkpoints.iterdir() if path.name.isdigit()) == kept
    assert not (checkpoints.parent / 'damaged').exists()
