"""The command by several processes: the figure of one, one stop for all, one work folder."""

from __future__ import annotations

import json
import pathlib
import signal
import time

import numpy as np
import pytest

from nope import records
from tests.distributed import launching
from tests.experiments import run_test


def arguments(workdir: pathlib.Path, text: pathlib.Path, *more: str) -> list[str]:
    return run_test.command('fig4.py:quick', workdir, text, *more)[1:]


@pytest.fixture(scope='module')
def text(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp('text')
    run_test.write_texts(folder)
    return folder


@pytest.fixture(scope='module')
def alone(tmp_path_factory, text) -> pathlib.Path:
    workdir = tmp_path_factory.mktemp('alone')
    ((status, _, errors),) = launching.finish(launching.start(arguments(workdir, text), 1, 1))
    assert status == 0, errors[-3000:]
    return workdir


def said(out: str) -> list[str]:
    """Lines on stdout but for those of the library that CPUs talk to each other by."""
    return [line for line in out.splitlines() if not line.startswith('[Gloo]')]


def losses(workdir: pathlib.Path) -> dict[str, list[tuple[int, float]]]:
    """Rows of the losses of every run."""
    found = {}
    for path in sorted(workdir.glob('runs/*/metrics.jsonl')):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.parent.name] = [(row['step'], row['loss']) for row in rows]
    return found


def assert_same_results(found: pathlib.Path, expected: pathlib.Path) -> None:
    ours, theirs = losses(found), losses(expected)
    assert ours.keys() == theirs.keys()
    for name, rows in theirs.items():
        np.testing.assert_allclose(ours[name], rows, rtol=0, atol=1e-5)
    folders = sorted(path.name for path in (expected / 'records').iterdir())
    assert folders == sorted(path.name for path in (found / 'records').iterdir())
    for name in folders:
        here, there = (records.load(work / 'records' / name) for work in (found, expected))
        for measure in there.measures:
            np.testing.assert_allclose(here[measure], there[measure], rtol=0, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize('then', [2, 1, 4])
def test_a_stop_of_one_process_stops_all_and_loses_nothing(alone, text, tmp_path, then) -> None:
    """Also where another number of processes goes on."""
    asked = arguments(tmp_path, text)
    started = launching.start(asked, 2, 1)
    while not any(tmp_path.glob('runs/*/checkpoints/10')):
        assert all(process.poll() is None for process in started)
        time.sleep(0.01)
    began = time.monotonic()
    started[1].send_signal(signal.SIGTERM)
    ended = launching.finish(started)
    assert [status for status, _, _ in ended] == [143, 143], [e[2][-1000:] for e in ended]
    assert time.monotonic() - began < 30
    ended = launching.finish(launching.start(asked, then, 1))
    assert [status for status, _, _ in ended] == [0] * then, [e[2][-1000:] for e in ended]
    assert 'going on from step' in ended[0][2]
    assert_same_results(tmp_path, alone)


def test_processes_with_work_folders_of_their_own_are_refused(text, tmp_path) -> None:
    address = launching.free_address()
    started = [
        launching.start(
            arguments(tmp_path / str(process), text), 2, 1, only=[process], address=address
        )[0]
        for process in range(2)
    ]
    for status, _, errors in launching.finish(started, 120):
        assert status == 2
        assert 'process 1 does not see what the first process wrote there' in errors
    assert not list(tmp_path.glob('*/figures')) and not list(tmp_path.glob('*/runs'))


OTHERS = {
    '--config.compute.accumulate=2': 'compute.accumulate is 1 here and 2 there',
    '--config.train.learning_rate=0.03': 'train.learning_rate is 0.003 here and 0.03 there',
    '--config.model.attention=chunked': "attention is None here and 'chunked' there",
}


@pytest.mark.parametrize(
    'flag', [next(iter(OTHERS)), *(pytest.param(f, marks=pytest.mark.slow) for f in [*OTHERS][1:])]
)
def test_a_process_with_another_flag_is_named_before_any_work(flag, text, tmp_path) -> None:
    address = launching.free_address()
    started = [
        launching.start(arguments(tmp_path, text, *more), 2, 1, only=[process], address=address)[0]
        for process, more in enumerate([[], [flag]])
    ]
    for status, _, errors in launching.finish(started, 120):
        assert status == 2
        assert 'error: process 1 (' in errors and OTHERS[flag] in errors
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_texts_that_differ_between_processes_are_refused_before_any_work(tmp_path) -> None:
    """Each machine has its own under the same path."""
    for process in range(2):
        (tmp_path / f'{process}' / 'text').mkdir(parents=True)
        run_test.write_texts(tmp_path / f'{process}' / 'text')
    (tmp_path / '1' / 'text' / '7.txt').write_text('another text')
    script = (
        'import os\n'
        'from absl import app\n'
        'from experiments import command, run\n'
        'from nope.runtime import processes\n'
        'whole = command.build\n'
        'def build(*given):\n'
        f'    os.chdir({str(tmp_path)!r} + f"/{{processes.index()}}")\n'
        '    return whole(*given)\n'
        'command.build = build\n'
        'app.run(run.main, flags_parser=run.parse_flags)\n'
    )
    asked = ['-c', script, *arguments(tmp_path / 'work', pathlib.Path('text'))[2:]]
    for status, _, errors in launching.finish(launching.start(asked, 2, 1), 120):
        assert status == 2
        assert 'process 1 ' in errors and 'build other experiments: data.sources is ' in errors
    assert not (tmp_path / 'work').exists()


@pytest.mark.slow
def test_a_process_that_fails_in_training_ends_the_other_and_is_named(text, tmp_path) -> None:
    """Its part of the batches cannot be read, while the other is in the step that needs it."""
    script = (
        'import sys\n'
        'from absl import app\n'
        'from experiments import run\n'
        'from experiments.runs import training\n'
        'from nope.runtime import processes\n'
        'whole = training.batches\n'
        'def batches(bench, spec, consumed):\n'
        '    for number, block in enumerate(whole(bench, spec, consumed)):\n'
        '        if number == 12 and processes.index() == 1:\n'
        "            raise OSError('shard 3: input/output error')\n"
        '        yield block\n'
        'training.batches = batches\n'
        'app.run(run.main, flags_parser=run.parse_flags)\n'
    )
    began = time.monotonic()
    asked = ['-c', script, *arguments(tmp_path, text)[2:]]
    first, second = launching.finish(launching.start(asked, 2, 1))
    assert time.monotonic() - began < 200  # JAX misses a process after 300 s
    assert [first[0], second[0]] == [1, 1], first[2][-2000:] + second[2][-2000:]
    assert 'error: shard 3: input/output error' in second[2]
    assert ') has failed: shard 3: input/output error' in first[2]
