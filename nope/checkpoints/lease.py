"""Single writer of a folder: a lock file, or a heartbeat lease where locks do not reach.

`sole` takes the lock file, and the lease on file systems where other machines do not see the lock.
`only_writer` takes the lease on a folder in a bucket.

A machine may be too slow for its heartbeats, a process stopped and continued, a laptop asleep, and
storage may answer after minutes. So a waiting process counts only time in which it looked
regularly. The holder writes a heartbeat only just after it has seen its own. One that was taken
over finds out at its next `check`, before it writes anything else. Storage that compares before it
writes would leave no gap; files do not.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pathlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from etils import epath

from nope.checkpoints.folders import in_bucket
from nope.checkpoints.holder import OWNER, SILENCE, owner_of
from nope.runtime import files, processes

log = logging.getLogger(__name__)

LOCK = '.checkpoints.lock'
BEAT = 10.0  # seconds between heartbeats
SETTLING = 2.0  # seconds for two that start at once to see each other


class LostLeaseError(OSError):
    """Loss of a lease to another command."""


@contextlib.contextmanager
def only_writer(folder: epath.Path, *, shared: bool) -> Iterator[Callable[[], None]]:
    """Hold of a folder of checkpoints for a `with` block, after whoever has it: by a lease
    (`owner.json` beside it) in a bucket, and by a lock file beside it elsewhere.

    shared: whether commands with other work folders may write there. Yields a cheap function to
    call now and then: it raises LostLeaseError once another command has taken over. Of several
    processes the first one holds it.
    """
    if not processes.is_first() or not (shared or in_bucket(folder)):
        yield lambda: None
    elif in_bucket(folder):
        with Lease(folder.parent / OWNER) as lease:
            yield lease.check
    else:
        local = pathlib.Path(folder)
        lock = local.with_name(LOCK)
        with files.exclusive(lock) as locked:
            if locked:
                yield lambda: None
                return
            with Lease(owner_of(local, lock)) as lease:
                yield lease.check


@contextlib.contextmanager
def sole(folder: pathlib.Path, lock: pathlib.Path) -> Iterator[Callable[[], None]]:
    """Exclusive hold of `folder` for a `with` block: by the lock file `lock`, or by a lease where
    locks do not reach all who see the folder. BusyError at once where someone else holds it.

    Yields as `only_writer`.
    """
    with files.exclusive(lock, wait=False) as locked:
        if locked:
            yield lambda: None
            return
        with Lease(owner_of(folder, lock), wait=False) as lease:
            yield lease.check


class _Sighting(NamedTuple):
    """Another holder's file: what it said, when it was last looked for, and for how many seconds,
    of looking at it regularly, it has said so."""

    said: dict[str, Any]
    at: float
    silent: float


# Path -> what this process last saw there, by this lease or another.
_sightings: dict[str, _Sighting] = {}


class Lease:
    """Heartbeat lease on `path`, a small JSON file, for the length of a `with` block.

    Waits until the holder releases the lease or its heartbeats stop for `silence` seconds. A
    process that is known to have ended is not waited for. Without `wait` a lease that is held
    raises BusyError at once. A process that slept for longer than `silence` may lose its lease;
    `check` tells.
    """

    def __init__(
        self,
        path: epath.PathLike,
        *,
        beat: float = BEAT,
        silence: float = SILENCE,
        settling: float = SETTLING,
        wait: bool = True,
    ) -> None:
        self._path = epath.Path(path)
        self._beat, self._silence, self._settling = beat, silence, settling
        self._waits = wait
        self._mine = {'token': uuid.uuid4().hex, 'pid': os.getpid(), **_here()}
        self._renewed = 0.0  # when the last heartbeat that arrived was begun
        self._taken_by: str | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name='lease', daemon=True)

    def __enter__(self) -> Lease:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            seen = self._wait_for_others()
            if self._is_late(seen):
                seen = self._wait_for_others()
            self._write(0)
            # One that settled in the meantime is to notice first.
            time.sleep(2 * self._beat if self._is_late(seen) else self._settling)
            if self._look():
                break
            self._taken_by = None
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        with self._patient():
            if self._is_mine(self._read()):
                self._path.unlink(missing_ok=True)

    def check(self) -> None:
        """Raises LostLeaseError where another command has taken over. Reads the file only when the
        last heartbeat is late; while it cannot be read the lease counts as held."""
        if _now() - self._renewed > 2 * self._beat:
            with self._patient():
                self._look()
        if self._taken_by is not None:
            raise LostLeaseError(f'{self._path.parent} was taken over by {self._taken_by}')

    def _wait_for_others(self) -> float:
        """When it was looked for whoever holds the lease, and nobody did."""
        told, answered = False, _now()
        while True:
            now = _now()
            try:
                seen = self._read()
            except OSError:  # of storage, which may answer at the next look
                if now - answered > self._silence:
                    raise
                log.warning('%s could not be read', self._path, exc_info=True)
                time.sleep(min(self._beat, self._silence) / 4)
                continue
            answered = now
            if seen is None or _is_gone(seen):
                return now
            if self._silent_for(seen, now) > self._silence:
                log.warning('%s was silent for %.0f s; taking over', _name(seen), self._silence)
                return now
            if not self._waits:
                raise files.BusyError(f'{_name(seen)} is at work on {self._path.parent}')
            if not told:
                log.info('%s is at work on %s; waiting for it', _name(seen), self._path.parent)
                told = True
            time.sleep(min(self._beat, self._silence) / 4)

    def _silent_for(self, seen: dict[str, Any], now: float) -> float:
        """Seconds for which the file, looked for at `now`, has said the same. Between two looks no
        more than a beat counts. A stop, a slow machine or slow storage may have kept both this
        process and the holder."""
        last = _sightings.get(str(self._path))
        silent = 0.0
        if last is not None and last.said == seen:
            silent = last.silent + min(now - last.at, self._beat)
        _sightings[str(self._path)] = _Sighting(seen, now, silent)
        return silent

    def _live(self) -> None:
        beats = 0
        while not self._over.wait(self._beat):
            beats += 1
            with self._patient():
                self._renew(beats)

    def _renew(self, beats: int) -> None:
        """Writes a heartbeat, unless another command has taken over, or may have while this one
        looked: it looks twice at most."""
        for _ in range(2):
            now = _now()
            if not self._look():
                return
            if _now() - now < self._silence / 2:
                self._write(beats)
                self._renewed = now
                return

    def _is_late(self, seen: float) -> bool:
        """True where others may have settled since the lease was `seen` to be free."""
        return _now() - seen > self._settling

    @contextlib.contextmanager
    def _patient(self) -> Iterator[None]:
        """`with` block that logs errors of the storage, which may work again at the next beat."""
        try:
            yield
        except Exception:
            log.warning('%s could not be read or written', self._path, exc_info=True)

    def _look(self) -> bool:
        """True while the lease is held; reads the file."""
        found = self._read()
        if self._is_mine(found):
            return True
        self._taken_by = _name(found)
        return False

    def _write(self, beats: int) -> None:
        text = json.dumps({**self._mine, 'beats': beats})
        if in_bucket(self._path):  # where a file is whole or absent by itself
            self._path.write_text(text)
        else:
            files.write_text(pathlib.Path(self._path), text)

    def _read(self) -> dict[str, Any] | None:
        """The file, which is whole or absent; None where there is none."""
        try:
            return json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return None

    def _is_mine(self, found: dict[str, Any] | None) -> bool:
        return found is not None and found.get('token') == self._mine['token']


def _now() -> float:
    """Seconds of a clock that nobody sets, and that goes on while the machine sleeps: on Linux
    CLOCK_BOOTTIME, on macOS CLOCK_MONOTONIC, where `time.monotonic` stands still."""
    clock = time.CLOCK_BOOTTIME if hasattr(time, 'CLOCK_BOOTTIME') else time.CLOCK_MONOTONIC
    return time.clock_gettime(clock)


def _here() -> dict[str, str]:
    """Identity of this machine since its boot, outside Linux by its network card, and of the
    container's process namespace."""
    boot, numbers = (
        pathlib.Path('/proc') / name for name in ('sys/kernel/random/boot_id', 'self/ns/pid')
    )
    return {
        'host': socket.gethostname(),
        'boot': boot.read_text().strip() if boot.exists() else f'{uuid.getnode():x}',
        'pids': os.readlink(numbers) if numbers.is_symlink() else '',
    }


def _is_gone(found: dict[str, Any]) -> bool:
    """True where the file's writer ran on this machine and has ended."""
    if any(found.get(key) != value for key, value in _here().items()):
        return False
    pid = found['pid']
    if pid == os.getpid():  # a number that was given anew, as in containers
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _name(found: dict[str, Any] | None) -> str:
    if found is None:
        return 'someone who has ended since'
    return f'process {found.get("pid")} of {found.get("host")}'
