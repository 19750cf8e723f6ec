"""One writer for a folder, without locks."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest
from etils import epath

from nope.checkpoints import lease
from nope.checkpoints.lease import Lease, LostLeaseError, only_writer, sole
from nope.runtime import files

QUICK = {'beat': 0.05, 'silence': 0.5, 'settling': 0.0}


def other(path: pathlib.Path, beats: int = 0, **more: object) -> None:
    """A sign of life of another machine."""
    found = {'token': 'theirs', 'pid': 7, 'host': 'far', 'boot': '', 'beats': beats, **more}
    partial = path.with_suffix('.partial')
    partial.write_text(json.dumps(found))
    partial.rename(path)


def test_it_is_there_as_long_as_it_is_held(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'owner.json'
    with Lease(path, **QUICK) as held:
        first = json.loads(path.read_text())
        time.sleep(0.2)
        held.check()
        assert json.loads(path.read_text())['beats'] > first['beats'] == 0
        assert first['pid'] == os.getpid()
    assert not path.exists()


def test_whoever_comes_second_waits_for_the_end_of_the_first(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / 'owner.json'
    over = threading.Event()

    def live() -> None:
        for beats in range(20):  # twice the silence that would end it
            other(path, beats)
            time.sleep(0.05)
        over.set()
        path.unlink()

    other(path)
    first = threading.Thread(target=live)
    first.start()
    with caplog.at_level(logging.INFO), Lease(path, **QUICK):
        assert over.is_set()
    first.join()
    assert f'process 7 of far is at work on {tmp_path}; waiting for it' in caplog.text


def test_silence_gives_it_up(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    other(tmp_path / 'owner.json')
    with Lease(tmp_path / 'owner.json', **QUICK) as held:
        held.check()
    assert 'process 7 of far was silent for 0 s; taking over' in caplog.text


def test_a_process_that_was_killed_here_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    path = tmp_path / 'owner.json'
    code = 'import sys, os\nfrom nope.checkpoints.lease import Lease\n'
    code += 'Lease(sys.argv[1], settling=0).__enter__()\nos.kill(os.getpid(), 9)\n'
    subprocess.run([sys.executable, '-c', code, str(path)], check=False)
    assert path.exists()
    with Lease(path, settling=0, silence=1e6) as held:
        held.check()


def test_what_another_has_taken_is_noticed(tmp_path: pathlib.Path) -> None:
    """By one who slept: the next check, or the next beat, tells."""
    path = tmp_path / 'owner.json'
    with Lease(path, **{**QUICK, 'beat': 0.2}) as held:
        other(path)
        time.sleep(0.5)
        with pytest.raises(LostLeaseError, match='was taken over by process 7 of far'):
            held.check()
    assert json.loads(path.read_text())['token'] == 'theirs', 'it is not ours to remove'


def test_storage_that_fails_for_a_while_ends_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Lease) -> None:
        raise OSError('no way there')

    with Lease(tmp_path / 'owner.json', **QUICK) as held:
        with monkeypatch.context() as broken:
            broken.setattr(Lease, '_read', fail)
            time.sleep(0.2)
            held.check()
        held.check()
    assert 'could not be read or written' in caplog.text
    assert not (tmp_path / 'owner.json').exists()


def test_of_two_that_begin_at_once_one_goes_first(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one whose file is there after both have settled."""
    path = tmp_path / 'owner.json'
    tries = []
    write = Lease._write

    def write_and_be_overwritten(self: Lease, beats: int) -> None:
        write(self, beats)
        if not tries:
            other(path)
        tries.append(beats)

    monkeypatch.setattr(Lease, '_write', write_and_be_overwritten)
    with Lease(path, **QUICK) as held:
        held.check()
    assert tries[:2] == [0, 0]


@pytest.mark.parametrize(('locks', 'leased'), [(True, False), (False, True)])
def test_it_is_held_only_where_no_lock_is(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, locks: bool, leased: bool
) -> None:
    monkeypatch.setattr(lease.Lease.__init__, '__kwdefaults__', {**QUICK, 'wait': True})
    monkeypatch.setattr(files, '_lock', lambda *_: locks)
    with sole(tmp_path / 'run', tmp_path / 'run' / '.lock') as check:
        check()
        assert (tmp_path / 'run' / 'owner.json').exists() == leased
    assert not (tmp_path / 'run' / 'owner.json').exists()


def test_what_is_held_is_not_waited_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / 'run' / '.lock'
    with (
        files.exclusive(lock),
        pytest.raises(files.BusyError, match=r'another process is at work on .*run'),
        sole(tmp_path / 'run', lock),
    ):
        pass
    monkeypatch.setattr(files, '_lock', lambda *_: False)
    other(tmp_path / 'run' / 'owner.json')
    with pytest.raises(files.BusyError, match='process 7 of far'), sole(tmp_path / 'run', lock):
        pass


def test_a_folder_of_checkpoints_is_leased_in_buckets_alone(tmp_path: pathlib.Path) -> None:
    with only_writer(epath.Path(tmp_path / 'run' / 'checkpoints')) as check:
        check()
        assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize('content', [b'', b'null', b'[1]', b'\xff', b'{"token": ', b'[' * 100_000])
def test_a_damaged_lease_is_that_of_someone_unknown(tmp_path: pathlib.Path, content: bytes) -> None:
    """It is respected as long as any other that is silent."""
    path = tmp_path / 'owner.json'
    path.write_bytes(content)
    with pytest.raises(files.BusyError, match=r'no lease .*owner\.json.*remove it'):
        Lease(path, **QUICK, wait=False).__enter__()
    with Lease(path, **QUICK) as held:
        held.check()
    assert not path.exists()


@pytest.mark.parametrize('pid', [None, '7', 7.0, -1, 0, 2**31, 2**80, [7]])
def test_a_number_that_no_process_has_is_not_that_of_an_ended_one(
    tmp_path: pathlib.Path, pid: object
) -> None:
    path = tmp_path / 'owner.json'
    other(path, **{**lease._here(), 'pid': pid})
    with pytest.raises(files.BusyError, match='is at work'):
        Lease(path, **QUICK, wait=False).__enter__()


def test_a_lease_outlives_jumps_of_the_clock(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Silence is measured by a clock that nobody sets, and not by the times of files."""
    path = tmp_path / 'owner.json'
    monkeypatch.setattr(time, 'time', iter([2e9, -1e9, 5e9, 0.0] * 99).__next__)
    other(path)
    os.utime(path, (5e9, 5e9))
    with pytest.raises(files.BusyError):
        Lease(path, **QUICK, wait=False).__enter__()
    path.unlink()
    with Lease(path, **QUICK) as held:
        os.utime(path, (0, 0))
        held.check()
