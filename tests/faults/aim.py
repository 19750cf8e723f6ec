"""Kills aimed at what a command is doing, by name: nothing in the command knows of them.

`Range` stands around the functions that a command calls: it counts what begins and ends, as events
with names, and sends SIGKILL to its own process at one of them. The file system's part (`watch`)
stands around the functions of Python, that of a command (`command_hooks`) around ours.

    opened FILE       a file to be written is there, with nothing in it
    half FILE         half of what one call writes is in the file
    unrenamed FILE    its temporary file, or folder, is whole
    renamed FILE      it has its name
    removing FOLDER   half of its files are gone

FILE is a path below a root, without the random part of temporary names. These hold the thread that
came there; other events are spans, in which the process goes on until it is killed, at the end of
the span at the latest.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

PARTIAL = re.compile(
    r'\.partial-[0-9a-f]{12}|\.orbax-checkpoint-tmp[^/]*|(?<=seen-by-all)-[0-9a-f]+'
)
UNWATCHED = re.compile(r'/tensorboard/|\.lock$|libraries\.log$|checkpoints/[^/]+/')
CHECKPOINT = re.compile(r'(runs/[^/]+)/checkpoints/(\d+)')
GATE_SECONDS = 300.0


class Aim(NamedTuple):
    """event: its name. number: which one of that name, from 1. seconds: from the event to the kill.
    marker: a file that is written just before. gate: a file that is waited for before these
    seconds begin, and `marker`.held is there meanwhile; '' for none."""

    event: str
    number: int
    seconds: float
    marker: str
    gate: str = ''


class Range:
    """Events below `root` of a process, and the one that it is killed at.

    trace: a file for all events, {"event", "number", "began", "seconds"} a line; '' for none.
    """

    def __init__(self, root: pathlib.Path, aim: Aim | None, trace: str) -> None:
        self._root, self._aim = f'{root}/', aim
        self._trace = pathlib.Path(trace).open('a', buffering=1) if trace else None  # noqa: SIM115
        self._counts: collections.Counter[str] = collections.Counter()
        self._open: dict[str, tuple[int, float]] = {}
        self._lock = threading.RLock()

    def name(self, path: Any) -> str | None:
        """The name of a path in events; None for one that is not watched."""
        if isinstance(path, int):
            return None
        absolute = os.path.abspath(os.fspath(path))
        if not isinstance(absolute, str) or not absolute.startswith(self._root):
            return None
        name = PARTIAL.sub('', absolute.removeprefix(self._root))
        return None if UNWATCHED.search(f'/{name}') else name

    def point(self, event: str) -> None:
        if self.reached(event):
            self.hold()

    def reached(self, event: str) -> bool:
        """Notes an event of one moment; whether it is the one to `hold` at."""
        number, hit = self._count(event)
        self._note(event, number, time.monotonic(), 0.0)
        return hit

    def begin(self, event: str) -> None:
        number, hit = self._count(event)
        self._open[event] = number, time.monotonic()
        if hit:
            assert self._aim is not None
            if self._aim.gate or not self._aim.seconds:
                self.hold()
            threading.Thread(target=self._later, args=(event,), daemon=True).start()

    def end(self, event: str) -> None:
        """Ends a span, if it has begun."""
        with self._lock:
            number, began = self._open.pop(event, (0, 0.0))
            if number and self._is_aim(event, number):
                self._kill()
        if number:
            self._note(event, number, began, time.monotonic() - began)

    @contextlib.contextmanager
    def span(self, event: str) -> Iterator[None]:
        self.begin(event)
        yield
        self.end(event)

    def hold(self) -> NoReturn:
        """Waits as the aim says, and kills this process."""
        assert self._aim is not None
        if self._aim.gate:
            pathlib.Path(f'{self._aim.marker}.held').touch()
            end = time.monotonic() + GATE_SECONDS
            while not os.path.exists(self._aim.gate) and time.monotonic() < end:
                time.sleep(0.01)
        time.sleep(self._aim.seconds)
        with self._lock:
            self._kill()

    def _later(self, event: str) -> None:
        assert self._aim is not None
        time.sleep(self._aim.seconds)
        with self._lock:
            if event in self._open:
                self._kill()

    def _kill(self) -> NoReturn:
        assert self._aim is not None
        with real.open(self._aim.marker, 'w') as file:
            json.dump(self._aim._asdict(), file)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError('a process outlives SIGKILL')

    def _count(self, event: str) -> tuple[int, bool]:
        with self._lock:
            self._counts[event] += 1
            number = self._counts[event]
        return number, self._is_aim(event, number)

    def _is_aim(self, event: str, number: int) -> bool:
        return self._aim is not None and (event, number) == (self._aim.event, self._aim.number)

    def _note(self, event: str, number: int, began: float, seconds: float) -> None:
        if self._trace is not None:
            row = {'event': event, 'number': number, 'began': began, 'seconds': seconds}
            self._trace.write(json.dumps(row) + '\n')


class real:
    """The functions as Python has them."""

    open = staticmethod(io.open)
    touch = staticmethod(os.open)
    rename = staticmethod(os.rename)
    replace = staticmethod(os.replace)
    mkdir = staticmethod(os.mkdir)
    unlink = staticmethod(os.unlink)
    rmtree = staticmethod(shutil.rmtree)


class Cut:
    """A file that is open to be written, whose every write is an event."""

    def __init__(self, file: Any, name: str, at: Range) -> None:
        self._file, self._name, self._at = file, name, at

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._file, attribute)

    def __enter__(self) -> Cut:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        if self._at.reached(f'half {self._name}'):
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            self._at.hold()
        return self._file.write(data)


def watch(at: Range) -> None:
    """Puts `at` around Python's functions for files, in this process and for ever."""

    sealed = ''

    def goes_on() -> None:
        nonlocal sealed
        at.end(sealed)
        sealed = ''

    def opened(path: Any, mode: str = 'r', *args: Any, **kwargs: Any) -> Any:
        file = real.open(path, mode, *args, **kwargs)
        name = at.name(path) if set(mode) & set('wax+') else None
        if name is None:
            return file
        if name.endswith('/done.json'):
            goes_on()
        at.point(f'opened {name}')
        return Cut(file, name, at)

    def touched(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        descriptor = real.touch(path, flags, *args, **kwargs)
        name = at.name(path) if flags & os.O_CREAT else None
        if name is not None:
            at.point(f'opened {name}')
        return descriptor

    def moved(move: Any) -> Any:
        def renamed(source: Any, target: Any, **kwargs: Any) -> None:
            nonlocal sealed
            name = at.name(target)
            if name is None:
                return move(source, target, **kwargs)
            saved = CHECKPOINT.fullmatch(name)
            if saved:
                at.end(f'save {saved[1]} {saved[2]}')
            else:
                at.point(f'unrenamed {name}')
            move(source, target, **kwargs)
            if saved:
                sealed = f'sealed {saved[1]} {saved[2]}'
                at.begin(sealed)
            else:
                at.point(f'renamed {name}')
            return None

        return renamed

    def made(path: Any, *args: Any, **kwargs: Any) -> None:
        real.mkdir(path, *args, **kwargs)
        name = at.name(path)
        saved = CHECKPOINT.fullmatch(name or '')
        if saved and 'tmp' in os.path.basename(path):
            goes_on()
            at.begin(f'save {saved[1]} {saved[2]}')

    def removed(path: Any, *args: Any, **kwargs: Any) -> None:
        name = at.name(path)
        if name is not None and at.reached(f'removing {name}'):
            files = sorted(p for p in pathlib.Path(path).rglob('*') if p.is_file())
            for file in files[::2]:
                real.unlink(file)
            at.hold()
        real.rmtree(path, *args, **kwargs)

    vars(io)['open'] = vars(builtins)['open'] = opened
    vars(os).update(open=touched)
    vars(os).update(rename=moved(real.rename), replace=moved(real.replace), mkdir=made)
    vars(shutil)['rmtree'] = removed
