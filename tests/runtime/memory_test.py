from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import resource
import subprocess
import sys

import pytest

from nope.runtime import memory


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


def test_the_garbage_collector_passes_over_what_is_made_to_stay() -> None:
    before = gc.get_freeze_count()
    try:
        with memory.made_to_stay():
            assert not gc.isenabled()
            made = [[i] for i in range(1000)]
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(made)
    finally:
        gc.unfreeze()


def test_arrays_have_the_machines_memory_or_what_a_limit_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    least, unlimited = memory.LEAST_ADDRESS_SPACE, resource.RLIM_INFINITY
    found = {}
    for limit in (unlimited, 2**60, least + 2**20, least - 1):
        monkeypatch.setattr(resource, 'getrlimit', lambda _, at=limit: (at, unlimited))
        found[limit] = memory.of_host()
    assert 2**28 < found[unlimited] == found[2**60] < 2**50
    assert found[least + 2**20] == 2**20 and found[least - 1] == 0


LIMITED = """
import resource, runpy, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.argv[0] = 'experiments.run'
runpy.run_module('experiments.run', run_name='__main__', alter_sys=True)
"""


@pytest.mark.parametrize('mib', [300, 1400])
def test_too_little_address_space_is_refused_in_one_line(mib: int, tmp_path: pathlib.Path) -> None:
    """Before the libraries, which would end the process, are loaded."""
    work = tmp_path / 'work'
    command = ['--config=configs/first_paper/fig1.py:quick', f'--workdir={work}']
    ended = subprocess.run(
        [sys.executable, '-c', LIMITED, str(mib << 20), *command],
        cwd=pathlib.Path(__file__).parents[2],
        env={**os.environ, 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'},  # not started anew
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f'error: the address space is limited to {mib / 1024:.1f} GiB (ulimit')
    assert not work.exists()


COUNT_ARENAS = """
import ctypes, sys, threading
from nope.runtime import memory, processors

memory.few_arenas()
assert not {'jax', 'numpy'} & set(sys.modules)
libc = ctypes.CDLL(None)
count = 3 * processors.usable()
together = threading.Barrier(count)

def allocate():
    together.wait()
    libc.malloc(1000)
    together.wait()

threads = [threading.Thread(target=allocate) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, 'stdout'))
libc.fflush(None)
print(processors.usable())
"""


@pytest.mark.parametrize(
    ('asked', 'few'),
    [
        ({}, True),
        ({'MALLOC_ARENA_MAX': '1000'}, False),
        ({'GLIBC_TUNABLES': 'glibc.malloc.arena_max=1000'}, False),
    ],
)
def test_threads_share_arenas_unless_more_are_asked_for(asked: dict[str, str], few: bool) -> None:
    if not hasattr(ctypes.CDLL(None), 'gnu_get_libc_version'):
        pytest.skip('not glibc')
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ('MALLOC_ARENA_MAX', 'GLIBC_TUNABLES')
    }
    out = subprocess.run(
        [sys.executable, '-c', COUNT_ARENAS],
        env={**environment, **asked},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    arenas, processors = out.count('<heap'), int(out.splitlines()[-1])
    assert arenas > 0
    assert (arenas <= max(2, processors)) is few


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, 'CDLL', lambda _: object())
    memory._glibc.cache_clear()
    memory.few_arenas()
    memory.give_back()
    memory._glibc.cache_clear()
