from __future__ import annotations

import ctypes
import pathlib
import sys

import pytest

from nope import memory


def resident() -> int:
    fields = pathlib.Path('/proc/self/statm').read_text().split()
    return int(fields[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith('linux'), reason='reads /proc')
def test_freed_memory_goes_back() -> None:
    if not hasattr(ctypes.CDLL(None), 'malloc_trim'):
        pytest.skip('the C library keeps what is freed')
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    size, count = 64 * 1024, 1024  # below what malloc maps for itself
    blocks = [libc.malloc(size) for _ in range(count)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    full = resident()
    for block in blocks[:-1]:  # the last one keeps the rest from falling off the end by itself
        libc.free(block)
    memory.give_back()
    assert full - resident() > size * count / 2
    libc.free(blocks[-1])


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, 'CDLL', lambda _: object())
    memory._trim.cache_clear()
    memory.give_back()
    memory._trim.cache_clear()
