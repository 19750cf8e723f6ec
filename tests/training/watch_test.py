"""Slow steps and steps that never end are told of."""

from __future__ import annotations

import logging
import os
import pathlib
import re
import threading
import time

import pytest

from nope.training import watch
from nope.training.watch import Watch


def test_a_slow_step_is_logged_with_its_wait(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(watch.time, 'monotonic', lambda: now[0])
    watched = Watch(tmp_path, slow=5.0, hang_seconds=1000.0)
    with caplog.at_level(logging.WARNING):
        for step, taken in enumerate([9.0] + [1.0] * 20 + [4.9, 8.0, 30.0], 1):
            now[0] += taken
            watched.step(step, usual=step not in (1, 24), data_seconds=7.5)
    (record,) = caplog.records
    assert record.getMessage() == (
        'step 23 took 8.00 s, 8.0 times the median; 7.50 s of it was waiting for examples'
    )


def test_of_several_processes_the_slow_one_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    monkeypatch.setattr(watch.time, 'monotonic', lambda: now[0])
    monkeypatch.setattr(watch.processes, 'count', lambda: 2)
    watched = Watch(tmp_path, slow=5.0, hang_seconds=1000.0)
    for step, taken in enumerate([1.0] * 20 + [8.0], 1):
        now[0] += taken
        watched.step(step)
    assert caplog.records[0].getMessage().startswith('process 0: step 21 took 8.00 s')


def test_where_threads_are_is_written_once_when_steps_stop_coming(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), Watch(tmp_path, slow=5.0, hang_seconds=0.1) as watched:
        watched.step(1)
        a_place_to_hang(tmp_path / 'stacks-0.txt')
    stacks = (tmp_path / 'stacks-0.txt').read_text()
    assert 'a_place_to_hang' in stacks
    assert stacks.count('s silent') == 1
    assert re.search(r'no step for \d+ s', caplog.text)


@pytest.mark.parametrize('number', [1, 2])
def test_several_processes_that_hang_for_good_end_and_one_alone_waits(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    left: list[str] = []
    monkeypatch.setattr(watch.processes, 'count', lambda: number)
    monkeypatch.setattr(watch.ending, 'leave', left.append)
    with Watch(tmp_path, slow=5.0, hang_seconds=0.05) as watched:
        watched.step(1)
        deadline = time.monotonic() + (20 if number > 1 else 0.5)
        while not left and time.monotonic() < deadline:
            time.sleep(0.02)
    assert (tmp_path / 'stacks-0.txt').exists()
    assert bool(left) == (number > 1)
    if left:
        said = r'process 0: no step for \d+ s, 6 times compute\.hang_seconds'
        assert re.match(said, left[0])


def test_storage_that_hangs_does_not_keep_processes_from_their_end(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / 'stacks-0.txt')  # whose opening waits for a reader
    left = threading.Event()
    monkeypatch.setattr(watch.processes, 'count', lambda: 2)
    monkeypatch.setattr(watch.ending, 'leave', lambda why: left.set())
    with Watch(tmp_path, slow=5.0, hang_seconds=0.05) as watched:
        watched.step(1)
        assert left.wait(20)


def a_place_to_hang(path: pathlib.Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.4)


def test_nothing_is_written_while_steps_come(tmp_path: pathlib.Path) -> None:
    with Watch(tmp_path, slow=5.0, hang_seconds=30.0) as watched:
        for step in range(5):
            watched.step(step)
    assert not list(tmp_path.iterdir())
