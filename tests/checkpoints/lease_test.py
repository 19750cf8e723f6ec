"""One writer for a folder, without locks."""

from __future__ import annotations

import errno
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
from etils import epath

from nope.checkpoints import lease
from nope.checkpoints.lease import Lease, LostLeaseError, only_writer, sole
from nope.runtime import files

QUICK = {'beat': 0.05, 'silence': 0.5, 'settling': 0.05}


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


def test_storage_that_answers_at_the_next_look_ends_no_wait(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [OSError(errno.ESTALE, 'stale')]
    read = Lease._read

    def flaky(self: Lease) -> dict | None:
        if failures:
            raise failures.pop()
        return read(self)

    monkeypatch.setattr(Lease, '_read', flaky)
    with Lease(tmp_path / 'owner.json', **QUICK) as held:
        held.check()
    failures.extend(OSError(errno.EIO, 'gone') for _ in range(1000))
    with pytest.raises(OSError, match='gone'), Lease(tmp_path / 'owner.json', **QUICK):
        pass


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
    code += 'Lease(sys.argv[1], beat=0.05).__enter__()\nos.kill(os.getpid(), 9)\n'
    subprocess.run([sys.executable, '-c', code, str(path)], check=False)
    assert path.exists()
    with Lease(path, **{**QUICK, 'silence': 1e6}) as held:
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


def test_a_folder_of_checkpoints_in_its_own_run_needs_no_other_hold(tmp_path: pathlib.Path) -> None:
    with only_writer(epath.Path(tmp_path / 'run' / 'checkpoints'), shared=False) as check:
        check()
        assert not (tmp_path / 'run').exists()


@pytest.mark.parametrize('locks', [True, False])
def test_a_folder_of_checkpoints_that_work_folders_share_has_one_writer(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, locks: bool
) -> None:
    """By the lock where the kernel's reaches all, else by a lease."""
    folder = epath.Path(tmp_path / 'run' / 'checkpoints')
    if not locks:
        monkeypatch.setattr(files, '_lock', lambda *_: False)
    with only_writer(folder, shared=True) as check:
        check()
        beside = {path.name for path in (tmp_path / 'run').iterdir()}
        assert beside == {lease.LOCK} if locks else {lease.LOCK, '.checkpoints.owner.json'}
        if locks:
            assert files.is_locked(tmp_path / 'run' / lease.LOCK)
    assert not files.is_locked(tmp_path / 'run' / lease.LOCK)


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


# Holds the lease, or waits for it, and says so; then counts what it writes.
WORKER = """
import logging, sys, time
from nope.checkpoints.lease import Lease, LostLeaseError
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
with Lease(sys.argv[1], beat=0.1, silence=2.0, settling=0.1) as held:
    print('held', flush=True)
    try:
        for written in range(10**6):
            held.check()
            print(written, flush=True)
            time.sleep(0.01)
    except LostLeaseError as error:
        print(error, flush=True)
"""


class Worker:
    """`WORKER` in a process of its own, until the end of a `with` block."""

    def __init__(self, path: pathlib.Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-c', WORKER, str(path)], stdout=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def says(self, line: str, seconds: float = 60.0) -> bool:
        """Whether it says that, by now or soon."""
        end = time.monotonic() + seconds
        while not any(line in said for said in self.said) and time.monotonic() < end:
            time.sleep(0.01)
        return any(line in said for said in self.said)

    def _read(self) -> None:
        assert self._process.stdout is not None
        self.said.extend(iter(self._process.stdout.readline, ''))


def test_one_that_was_stopped_is_taken_over_and_writes_no_more(tmp_path: pathlib.Path) -> None:
    """No more than what it was about to write when it was stopped."""
    path = tmp_path / 'owner.json'
    with Worker(path) as worker:
        assert worker.says('held')
        worker.send(signal.SIGSTOP)
        time.sleep(0.2)
        written = len(worker.said)
        with Lease(path, beat=0.1, silence=2.0, settling=0.1) as held:
            worker.send(signal.SIGCONT)
            assert worker.says(f'{tmp_path} was taken over by process {os.getpid()} of ')
            assert len(worker.said) <= written + 2
            held.check()


def test_storage_that_answers_late_makes_nobody_silent(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'owner.json'
    read, looks = Lease._read, []

    def read_slowly(self: Lease) -> dict | None:
        found = read(self)
        looks.append(found)
        if len(looks) == 2:
            time.sleep(2 * QUICK['silence'])
        return found

    monkeypatch.setattr(Lease, '_read', read_slowly)
    other(path)
    late = Lease(path, **QUICK, wait=False)
    for _ in range(2):
        with pytest.raises(files.BusyError):
            late.__enter__()
    assert len(looks) == 2 and looks[0] == looks[1]


def test_a_heartbeat_that_comes_late_takes_nothing_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one who was stopped between seeing its own and writing the next."""
    path = tmp_path / 'owner.json'
    with Lease(path, **QUICK) as held:
        look, looks = Lease._look, []

        def look_and_stop(self: Lease) -> bool:
            found = look(self)
            if not looks:
                looks.append(found)
                other(path)
                time.sleep(QUICK['silence'])
            return found

        monkeypatch.setattr(Lease, '_look', look_and_stop)
        deadline = time.monotonic() + 60
        while not looks and time.monotonic() < deadline:
            time.sleep(0.01)
        held._over.set()
        held._thread.join()  # that heartbeat is over
        assert looks == [True]
        with pytest.raises(LostLeaseError, match='process 7 of far'):
            held.check()
    assert json.loads(path.read_text())['token'] == 'theirs'


def test_one_that_was_stopped_before_it_took_a_free_lease_looks_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'owner.json'
    wait, waits = Lease._wait_for_others, []

    def wait_and_stop(self: Lease) -> float:
        seen = wait(self)
        if not waits:
            other(path)
            time.sleep(2 * QUICK['settling'])
        waits.append(seen)
        return seen

    monkeypatch.setattr(Lease, '_wait_for_others', wait_and_stop)
    with pytest.raises(files.BusyError, match='process 7 of far'):
        Lease(path, **QUICK, wait=False).__enter__()
    assert json.loads(path.read_text())['token'] == 'theirs'


def test_who_may_have_overwritten_another_gives_it_time_to_notice(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = Lease._write, []

    def write_slowly(self: Lease, beats: int) -> None:
        if not written:
            time.sleep(2 * QUICK['settling'])
        write(self, beats)
        written.append(time.monotonic())

    monkeypatch.setattr(Lease, '_write', write_slowly)
    with Lease(tmp_path / 'owner.json', **{**QUICK, 'beat': 0.3}):
        assert time.monotonic() - written[0] >= 0.6


def test_one_that_can_read_but_not_write_notices_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: its heartbeats fail, and others will take it for silent."""
    path = tmp_path / 'owner.json'

    def fail(*_: object) -> None:
        raise OSError('no space left')

    with Lease(path, **{**QUICK, 'beat': 0.2}) as held:
        monkeypatch.setattr(Lease, '_write', fail)
        time.sleep(0.7)
        held.check()
        held._over.set()  # before the thread looks
        held._thread.join()
        other(path)
        with pytest.raises(LostLeaseError, match='process 7 of far'):
            held.check()
