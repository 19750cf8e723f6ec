"""Peer process of a benchmark in an interpreter of its own: both ends of the pipe to it.

The request is a JSON argument. The first answer comes without a question: versions, and the first
run's result, time and memory. Then every line on stdin asks for one timed run.
Imports neither JAX nor PyTorch, so that they never share a process.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import _bench


class Peer:
    """tools/SCRIPT in the interpreter `python`, asked for one thing; `seconds()` has it run once.

    versions, result, memory_mib: of its first run. cpu_seconds: of the timed ones.
    """

    def __init__(self, python: str, script: str, asked: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [python, str(pathlib.Path(__file__).with_name(script)), json.dumps(asked)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.cpu_seconds = 0.0
        first = self._answer()
        self.versions: str = first['versions']
        self.result: Any = first['result']
        self.memory_mib: float = first['memory_mib']

    def seconds(self) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write('\n')
        answer = self._answer()
        self.cpu_seconds += answer['cpu_seconds']
        return answer['seconds']

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f'the peer ended with status {self._process.wait()}')
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate()


def serve(run: Callable[[], Any], versions: str) -> None:
    """The peer's end. run: does what was asked; its result is JSON-able."""
    results: list[Any] = []
    start = time.perf_counter()
    memory = _bench.peak_above_base(lambda: results.append(run()))
    _say(
        versions=versions,
        result=results[0],
        first_seconds=time.perf_counter() - start,
        memory_mib=memory,
    )
    for _ in sys.stdin:
        cpu = time.process_time()
        taken = _bench.seconds(run)
        _say(seconds=taken, cpu_seconds=time.process_time() - cpu)


def _say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)
