"""Shared parts of the benchmarks: timing, memory, background load, JSON lines.

Imports neither JAX nor PyTorch, so that both sides of a comparison measure the same way.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

MIB = 2**20
_TURN = 3  # calls


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


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call; `function` returns when its work is done."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def per_call(call: Callable[[], Any], wait: Callable[[Any], object], least: float) -> float:
    """Seconds of each of several calls that queue behind each other on a device, so that starting
    one hides behind the one before; as many as take `least` seconds together."""
    start = time.perf_counter()
    wait(call())
    calls = max(round(least / max(time.perf_counter() - start, 1e-6)), 1)
    start = time.perf_counter()
    for _ in range(calls):
        last = call()
    wait(last)
    return (time.perf_counter() - start) / calls


def interleaved(
    timers: Mapping[str, Callable[[], float]], repeats: int, budget: float
) -> dict[str, float]:
    """Median seconds of each timer, taken in turns so that background load meets all alike.

    A turn is three calls, and the first does not count: it meets the caches, and the memory
    taken back by the system, that the others left. repeats: rounds wanted. budget: seconds
    after which no further round starts (one always runs).
    """
    taken: dict[str, list[float]] = {name: [] for name in timers}
    start = time.perf_counter()
    for done in range(repeats):
        if done and time.perf_counter() - start > budget:
            break
        for name, timer in timers.items():
            taken[name] += [timer() for _ in range(_TURN)][1:]
    return {name: statistics.median(values) for name, values in taken.items()}


def peak_above_base(function: Callable[[], object]) -> float:
    """MiB of resident memory that one call of `function` needs beyond what was there before.

    On Linux the process's high-water mark is reset first; elsewhere it cannot be, and a call
    that stays below an earlier peak is seen as 0.
    """
    _return_freed_memory()
    _reset_peak()
    base = _status('VmRSS:') or _highest_ever()
    function()
    return max(_peak() - base, 0) / MIB


def peak() -> float:
    """MiB of resident memory the process has needed at most (since the last reset)."""
    return _peak() / MIB


class Load:
    """Cores that other processes kept busy while this one measured (Linux; None elsewhere)."""

    def __init__(self) -> None:
        self._start = time.perf_counter(), _busy_seconds(), _own_seconds()

    def others(self, mine: float = 0.0) -> float | None:
        """mine: CPU seconds of living subprocesses that belong to the measurement."""
        start, busy, own = self._start
        now_busy = _busy_seconds()
        if busy is None or now_busy is None:
            return None
        other = (now_busy - busy) - (_own_seconds() - own) - mine
        return max(other, 0.0) / max(time.perf_counter() - start, 1e-9)


def _busy_seconds() -> float | None:
    """CPU seconds all processes of the machine have used."""
    try:
        fields = pathlib.Path('/proc/stat').read_text().split('\n', 1)[0].split()[1:]
    except OSError:
        return None
    ticks = [int(field) for field in fields]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf('SC_CLK_TCK')  # not idle, not waiting


def _own_seconds() -> float:
    return time.process_time()


def _status(field: str) -> int | None:
    """A memory field of /proc/self/status, bytes."""
    try:
        lines = pathlib.Path('/proc/self/status').read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), None)


def _peak() -> int:
    return _status('VmHWM:') or _highest_ever()


def _highest_ever() -> int:
    unit = 1 if sys.platform == 'darwin' else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _reset_peak() -> None:
    try:
        pathlib.Path('/proc/self/clear_refs').write_text('5')
    except OSError:
        return


def _return_freed_memory() -> None:
    """Hands freed heap memory back to the system (glibc), so that reuse counts as a need."""
    try:
        ctypes.CDLL('libc.so.6').malloc_trim(0)
    except (OSError, AttributeError):
        return
