"""Attempts at whole commands, each ended by itself or by an aimed kill (see `aim`)."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import uuid
from typing import Any, NamedTuple

from tests.faults import aim
from tests.faults.harness import ROOT
from tests.faults.server import COMMAND
from tests.quick import QUICK

OWN = 'own'  # in place of a server's way with the cache: the command as a user starts it


class Task(NamedTuple):
    """A command and the folder that it works in. arguments: COMMAND or a module, and more."""

    arguments: tuple[str, ...]
    root: pathlib.Path


class Attempt(NamedTuple):
    """pid: of the child. aimed: the kill, if any. errors: file of what it says."""

    pid: int
    aimed: aim.Aim | None
    errors: pathlib.Path

    @property
    def held(self) -> bool:
        """Whether it waits at its event for the gate to open."""
        return self.aimed is not None and os.path.exists(f'{self.aimed.marker}.held')

    @property
    def landed(self) -> bool:
        """Whether it was at its event when it killed itself."""
        if self.aimed is None or not os.path.exists(self.aimed.marker):
            return False
        return aim.Aim(**json.loads(pathlib.Path(self.aimed.marker).read_text())) == self.aimed


class Commands:
    """Children of one server (`tests.faults.server`). folder: for what it keeps of them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        environment = {
            **os.environ,
            'JAX_PLATFORMS': 'cpu',
            'JAX_COMPILATION_CACHE_DIR': str(folder / 'cache'),
            'XLA_FLAGS': QUICK,
        }
        self._environment = environment
        self._server = subprocess.Popen(
            [sys.executable, '-m', 'tests.faults.server'],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ended: dict[int, int] = {}

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(timeout=60)

    def start(
        self,
        task: Task,
        *,
        at: tuple[str, int, float] | None = None,
        gate: str = '',
        trace: str = '',
        cache: str = 'read',
        leases: str | None = None,
    ) -> Attempt:
        """at: event, number and seconds of a kill. gate, trace, leases: as `aim` and
        `command_hooks` say. cache: as `server` says."""
        name = self.folder / uuid.uuid4().hex
        aimed = None if at is None else aim.Aim(*at, f'{name}.killed', gate)
        errors = name.with_suffix('.err')
        self._send(
            arguments=list(task.arguments),
            root=str(task.root),
            aimed=aimed,
            trace=trace,
            errors=str(errors),
            cache=cache,
            leases=leases,
        )
        said = self._next()
        while 'status' in said:
            said = self._next()
        return Attempt(said['pid'], aimed, errors)

    def wait(self, attempt: Attempt) -> int:
        """Its exit status."""
        while attempt.pid not in self._ended:
            self._next()
        return self._ended.pop(attempt.pid)

    def ended(self, attempt: Attempt) -> bool:
        """Whether it has ended. Only `wait` says how."""
        try:
            os.kill(attempt.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def run(self, task: Task, **options: Any) -> tuple[int, str]:
        """Exit status, and what it said."""
        if options.get('cache') == OWN:
            return self._run_own(task)
        attempt = self.start(task, **options)
        return self.wait(attempt), attempt.errors.read_text()

    def _run_own(self, task: Task) -> tuple[int, str]:
        program, *rest = task.arguments
        started = ['-m', program] if program == COMMAND else [program]
        cache = {
            'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '1e9',
            'PYTHONPATH': os.pathsep.join(filter(None, [str(ROOT), os.environ.get('PYTHONPATH')])),
        }
        ended = subprocess.run(
            [sys.executable, *started, *rest],
            cwd=ROOT,
            env=self._environment | cache,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        return ended.returncode, ended.stdout

    def _send(self, **fields: Any) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(fields) + '\n')
        self._server.stdin.flush()

    def _next(self) -> dict[str, int]:
        """The next thing that the server says; ends are kept, too."""
        assert self._server.stdout is not None
        while True:
            said = json.loads(self._server.stdout.readline())
            if 'status' in said:
                self._ended[said['pid']] = said['status']
            return said
