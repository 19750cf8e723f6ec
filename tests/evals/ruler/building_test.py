"""Prompts that are built by several processes are those of one."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from nope.evals.ruler import Plan, building
from tests.evals.ruler.pieces import Pieces, vocabulary


def plan(cache: pathlib.Path | None, lengths: tuple[int, ...] = (1024, 2048)) -> Plan:
    settings: dict[str, Any] = {'samples': 3, 'words': vocabulary(), 'cache': cache}
    return Plan(Pieces(), ('vt', 'niah_multikey_3'), lengths, **settings)


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_prompts_do_not_depend_on_the_number_of_processes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.build(plan(tmp_path / 'one'), workers=1)
    assert len(contents(tmp_path / 'one')) == 4
    monkeypatch.setattr(building, 'LEAST_TOKENS', 0)
    building.build(plan(tmp_path / 'two'), workers=2)
    assert contents(tmp_path / 'two') == contents(tmp_path / 'one')


def test_only_what_the_cache_lacks_is_built(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    building.build(plan(tmp_path), workers=1)
    kept = contents(tmp_path)
    gone = next(iter(tmp_path.iterdir()))
    gone.unlink()
    made: list[str] = []
    make = Plan.make

    def count(self: Plan, length: int, task: str, *, write: bool) -> list:
        made.append(f'{task}-{length}')
        return make(self, length, task, write=write)

    monkeypatch.setattr(Plan, 'make', count)
    building.build(plan(tmp_path), workers=2)
    assert len(made) == 1 and gone.name.startswith(made[0])
    assert contents(tmp_path) == kept


def test_a_length_that_is_too_short_is_told_by_the_process_that_finds_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, 'LEAST_TOKENS', 0)
    short = plan(tmp_path, (200, 1024))
    with pytest.raises(ValueError, match='length is 200'):
        building.build(short, workers=2)
    building.build(plan(None), workers=2)  # without a cache there is nothing to keep
