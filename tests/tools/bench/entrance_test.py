"""python -m tools.bench: its programs, and what they refuse before they work."""

from __future__ import annotations

import pathlib

import pytest

from tools.bench import __main__ as entrance
from tools.bench import aot, evals

PARTS = {'harness', 'peer', 'shapes', 'eval_cases', 'aot_programs', 'aot_record'}


@pytest.mark.parametrize(('arguments', 'said'), [
    (['trian'], 'trian: no such program'),
    (['theorems', '--longest=1'], '--longest=1: it must be at least 2'),
    (['train', '--only=nothing'], "--only=['nothing'] names no case"),
    (['evals', '--only=nothing'], "--only=['nothing'] names no case"),
    (['evals', '--dtype=bfloat16', '--peer-python=python'], '--peer-python is for a CPU'),
    (['model', '--work=step', '--batch=0'], '--batch is 0; accepted: 1 and more'),
    (['model', '--work=step', '--work=loss'], 'accepted: once, or with --small'),
    (['attention', '--set=model', '--case=h64_8k'], '--case h64_8k: not of --set model'),
    *((['aot', '--config=fig1:paper', f'--mesh={mesh}'], 'data, fsdp, tensor, context')
      for mesh in ('model=2', 'fsdp', 'fsdp=x')),
])  # fmt: skip
def test_what_cannot_be_is_refused(
    arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    # This process stays as it is.
    monkeypatch.setattr(entrance.memory, 'restart_with_huge_pages', lambda: None)
    monkeypatch.setattr(entrance.memory, 'few_arenas', lambda: None)
    monkeypatch.setattr(entrance.door, 'enter', lambda: None)
    monkeypatch.setattr(aot.targets, 'devices', lambda topology: aot.jax.devices())
    monkeypatch.setattr('sys.argv', ['tools.bench', *arguments])
    with pytest.raises(SystemExit) as end:
        entrance.main()
    assert end.value.code and said in f'{end.value.code} {capsys.readouterr().err}'


def test_every_module_is_a_program_or_a_part_of_one() -> None:
    modules = {path.stem for path in pathlib.Path(evals.__file__).parent.glob('[!_]*.py')}
    assert modules == {*entrance.PROGRAMS} | PARTS
