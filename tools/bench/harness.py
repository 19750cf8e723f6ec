"""Harness of the benchmarks: timing in turns, memory, background load, peer processes, JSON lines.

Neither JAX nor PyTorch is loaded with it, so that both sides of a comparison measure the same way.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

MIB = 2**20
MOST_TURNS = 20
ROOT = pathlib.Path(__file__).resolve().parents[2]
_TURN = 3  # calls
Key = TypeVar('Key')


def emit(record: Mapping[str, Any]) -> None:
    """One JSON line on stdout; floats to four digits, fields that are None left out."""
    kept = {name: _rounded(value) for name, value in record.items() if value is not None}
    print(json.dumps(kept), flush=True)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f'{value:.4g}')
    if isinstance(value, Mapping):
        return {k: _rounded(v) for k, v in value.items() if v is not None}
    return value


def about() -> dict[str, str]:
    """The processor and JAX's version, fields of a line."""
    import jax  # not on a peer's side

    return {'device': jax.devices()[0].device_kind, 'jax': jax.__version__}


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call; `function` returns when its work is done."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def per_call(call: Callable[[], Any], wait: Callable[[Any], object], least: float) -> float:
    """Seconds of a call among several that queue on a device, so that starting one takes no time of
    its own. least: seconds of all together."""
    start = time.perf_counter()
    wait(call())
    calls = max(round(least / max(time.perf_counter() - start, 1e-6)), 1)
    start = time.perf_counter()
    for _ in range(calls):
        last = call()
    wait(last)
    return (time.perf_counter() - start) / calls


def interleaved(
    timers: Mapping[Key, Callable[[], float]], budget: float, rounds: int = MOST_TURNS
) -> dict[Key, float]:
    """Median seconds of each timer, taken in turns so that background load meets all alike.

    A turn is three calls. The first does not count, since the others took its caches and memory.
    budget: seconds after which no further round starts (one always runs). rounds: at most.
    """
    taken: dict[Key, list[float]] = {name: [] for name in timers}
    start = time.perf_counter()
    for done in range(rounds):
        if done and time.perf_counter() - start > budget:
            break
        for name, timer in timers.items():
            taken[name] += [timer() for _ in range(_TURN)][1:]
    return {name: statistics.median(values) for name, values in taken.items()}


def beside_load(
    timers: Mapping[Key, Callable[[], float]],
    budget: float,
    rounds: int = MOST_TURNS,
    peers: Collection[Peer] = (),
) -> tuple[dict[Key, float], float | None]:
    """`interleaved`, and the cores that other processes than this and the peers kept busy meanwhile
    (Linux; None elsewhere)."""

    def mine() -> float:
        return time.process_time() + sum(peer.cpu_seconds for peer in peers)

    start, busy, before = time.perf_counter(), _busy_seconds(), mine()
    taken = interleaved(timers, budget, rounds)
    now_busy = _busy_seconds()
    if busy is None or now_busy is None:
        return taken, None
    others = max(now_busy - busy - (mine() - before), 0.0)
    return taken, others / max(time.perf_counter() - start, 1e-9)


def peak_above_base(function: Callable[[], object]) -> float:
    """MiB of resident memory that one call of `function` needs beyond what was there before.

    On Linux the process's high-water mark is reset first; elsewhere it cannot be, and a call
    that stays below an earlier peak is seen as 0.
    """
    with contextlib.suppress(OSError, AttributeError):  # freed heap memory: reuse is a need
        ctypes.CDLL('libc.so.6').malloc_trim(0)
    with contextlib.suppress(OSError):
        pathlib.Path('/proc/self/clear_refs').write_text('5')
    base = _status('VmRSS:') or _highest_ever()
    function()
    return max(peak() - base / MIB, 0.0)


def peak() -> float:
    """MiB of resident memory the process has needed at most (since the last reset)."""
    return (_status('VmHWM:') or _highest_ever()) / MIB


class Peer:
    """`peer.py` in the interpreter `python`, asked for one thing; `seconds()` has it run once.

    versions, result, memory_mib: of its first run. cpu_seconds: of the timed ones.
    """

    def __init__(self, python: str, asked: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            [python, '-m', 'tools.bench.peer', json.dumps(asked)],
            cwd=ROOT,
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


def peer_python(asked: str | None) -> str | None:
    """The interpreter asked for, or this one where it has PyTorch and transformers."""
    missing = [name for name in ('torch', 'transformers') if not importlib.util.find_spec(name)]
    if missing and not asked:
        print(f'no comparison: {" and ".join(missing)} not installed here', file=sys.stderr)
    return asked or (None if missing else sys.executable)


def _busy_seconds() -> float | None:
    """CPU seconds all processes of the machine have used."""
    try:
        fields = pathlib.Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:]
    except OSError:
        return None
    ticks = [int(field) for field in fields]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf('SC_CLK_TCK')  # not idle, not waiting


def _status(field: str) -> int | None:
    """A memory field of /proc/self/status, bytes."""
    try:
        lines = pathlib.Path('/proc/self/status').read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), None)


def _highest_ever() -> int:
    unit = 1 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
