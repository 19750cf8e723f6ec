from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from nope.runtime import memory

PROGRAM = """
import os, sys
from nope.runtime import memory
memory.restart_with_huge_pages()
print(os.environ.get('GLIBC_TUNABLES'), os.getpid(), *sys.argv[1:], sep='|')
"""


class Restarted(BaseException):
    pass


@pytest.fixture
def restarts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """What the process would have been replaced with; the kernel and glibc allow it."""
    calls: list[tuple[list[str], dict[str, str]]] = []

    def execve(path: str, arguments: list[str], environment: dict[str, str]) -> None:
        calls.append((arguments, environment))
        raise Restarted(path)

    monkeypatch.setattr(os, 'execve', execve)
    monkeypatch.setattr(memory, '_must_ask', lambda: True)
    monkeypatch.setattr(memory, '_glibc_version', lambda: (2, 36))
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    return calls


def test_the_same_command_starts_again_with_the_tunable_added(
    restarts: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('GLIBC_TUNABLES', 'glibc.malloc.perturb=0')
    monkeypatch.setattr(sys, 'orig_argv', ['python', '-m', 'some.module', '--flag=1'])
    with pytest.raises(Restarted):
        memory.restart_with_huge_pages()
    arguments, environment = restarts[0]
    assert arguments == [sys.executable, '-m', 'some.module', '--flag=1']
    assert environment == {
        **os.environ,
        'GLIBC_TUNABLES': 'glibc.malloc.perturb=0:glibc.malloc.hugetlb=1',
    }


@pytest.mark.parametrize('value', ['glibc.malloc.hugetlb=1', 'glibc.malloc.hugetlb=0'])
def test_what_the_user_chose_stays(
    restarts: list, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv('GLIBC_TUNABLES', value)
    memory.restart_with_huge_pages()
    assert not restarts


def test_nothing_happens_where_the_kernel_or_the_c_library_does_not_take_part(
    restarts: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, '_glibc_version', lambda: (2, 34))
    memory.restart_with_huge_pages()
    monkeypatch.setattr(memory, '_glibc_version', lambda: ())
    memory.restart_with_huge_pages()
    monkeypatch.setattr(memory, '_glibc_version', lambda: (2, 36))
    monkeypatch.setattr(memory, '_must_ask', lambda: False)
    memory.restart_with_huge_pages()
    assert not restarts


@pytest.mark.parametrize(
    ('policy', 'asks'),
    [
        ('always [madvise] never\n', True),
        ('[always] madvise never\n', False),
        ('always madvise [never]\n', False),
        (None, False),
    ],
)
def test_memory_asks_only_where_the_policy_is_madvise(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, policy: str | None, asks: bool
) -> None:
    file = tmp_path / 'enabled'
    if policy is not None:
        file.write_text(policy)
    monkeypatch.setattr(memory, '_POLICY', file)
    assert memory._must_ask() is asks


def test_a_program_keeps_its_process_and_arguments() -> None:
    environment = {k: v for k, v in os.environ.items() if k != 'GLIBC_TUNABLES'}
    program = subprocess.Popen(
        [sys.executable, '-c', PROGRAM, 'one', 'two words'],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    output, _ = program.communicate(timeout=60)
    tunables, pid, *arguments = output.strip().split('|')
    assert arguments == ['one', 'two words']
    assert int(pid) == program.pid
    restarted = memory._must_ask() and memory._glibc_version() >= (2, 35)
    assert tunables == ('glibc.malloc.hugetlb=1' if restarted else 'None')
