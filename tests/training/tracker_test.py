"""Metrics in Weights & Biases: which rows a run of theirs is given, resumed or not; refusals."""

from __future__ import annotations

import dataclasses
import importlib.machinery
import pathlib
import shutil
import sys
import types
from typing import Any

import pytest

from nope.runtime import processes
from nope.training import metrics
from nope.training.config import Compute
from nope.training.tracker import refusal
from tests.training.train_test import COMPUTE, PRETRAIN, logged, run


class Fake(types.ModuleType):
    """The package, whose runs remember what they are given; one of an id that was there goes on."""

    def __init__(self) -> None:
        super().__init__('wandb')
        self.__spec__ = importlib.machinery.ModuleSpec('wandb', None, origin='here')
        self.asked: list[dict[str, Any]] = []
        self.rows: dict[str, dict[int, dict[str, float]]] = {}
        self.exits: list[int] = []

    def Settings(self, **settings: Any) -> dict[str, Any]:
        return settings

    def init(self, **asked: Any) -> Fake.Run:
        self.asked.append(asked)
        return Fake.Run(self, self.rows.setdefault(asked['id'], {}))

    class Run:
        def __init__(self, package: Fake, rows: dict[int, dict[str, float]]) -> None:
            self._package, self._rows = package, rows

        @property
        def step(self) -> int:
            return max(self._rows, default=-1) + 1

        def log(self, values: dict[str, float], step: int) -> None:
            assert step >= self.step, 'a step that is there'
            self._rows[step] = values

        def finish(self, exit_code: int) -> None:
            self._package.exits.append(exit_code)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setitem(sys.modules, 'wandb', fake)
    return fake


def tracked(**changes: Any) -> Compute:
    return dataclasses.replace(COMPUTE, wandb='mine', monitor=3, **changes)


def test_a_run_is_given_every_row(wandb: Fake, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / 'small-0123456789ab'
    run(folder, PRETRAIN, compute=tracked())
    (rows,) = wandb.rows.values()
    assert [{'step': step, **row} for step, row in rows.items()] == metrics.read(folder)
    assert list(rows) == [2, 3, 4, 6]
    assert {'loss', 'learning_rate'} <= rows[2].keys()
    assert {'entropy/0', 'max_logit/0'} <= rows[3].keys()
    (asked,) = wandb.asked
    assert asked['id'].startswith(f'{folder.name}-')
    assert (asked['project'], asked['name'], asked['dir']) == ('mine', 'test', str(folder))
    assert asked['config'] == {'seed': 0} and asked['resume'] == 'allow'
    assert wandb.exits == [0]


def test_a_resumed_run_goes_on_in_the_same_one(wandb: Fake, tmp_path: pathlib.Path) -> None:
    """Rows that were made again after the last checkpoint are there already."""
    compute = tracked(checkpoint_every=4, log_every=1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, PRETRAIN, compute=compute, should_stop=kill())
    (rows,) = wandb.rows.values()
    assert list(rows) == [1, 2, 3, 4, 5] and wandb.exits == [1]
    run(tmp_path, PRETRAIN, compute=compute)
    assert len(wandb.rows) == 1 and list(rows) == [1, 2, 3, 4, 5, 6]
    assert [row['loss'] for row in rows.values()] == [row['loss'] for row in logged(tmp_path)]
    assert wandb.exits == [1, 0]


def test_a_run_that_begins_anew_is_another_one(wandb: Fake, tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        run(tmp_path / 'run', PRETRAIN, compute=tracked())
        shutil.rmtree(tmp_path / 'run')
    first, second = wandb.rows.values()
    assert list(first) == list(second)


def kill() -> Any:
    """Ends a training in its sixth step, after the row of the fifth."""
    asked = iter(range(1, 7))

    def should_stop() -> bool:
        if next(asked) == 6:
            raise KeyboardInterrupt
        return False

    return should_stop


def test_of_several_processes_the_first_one_writes(
    wandb: Fake, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, 'is_first', lambda: False)
    run(tmp_path, PRETRAIN, compute=tracked())
    assert not wandb.asked


def test_without_a_project_nothing_is_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'wandb', None)  # importing it is an ImportError
    run(tmp_path, PRETRAIN)


def test_a_missing_package_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'wandb', None)
    with pytest.raises(ValueError, match=r"wandb is 'mine'.*not installed: pip install wandb"):
        Compute(wandb='mine')
    # Nor is a folder of that name a package, as there is one where it was used.
    monkeypatch.delitem(sys.modules, 'wandb')
    (tmp_path / 'wandb').mkdir()
    monkeypatch.setattr(sys, 'path', [str(tmp_path)])
    assert 'not installed' in refusal('mine')


@pytest.mark.parametrize('name', ['', 'a/b', 'what?', 'x' * 129])
def test_a_name_that_is_no_project_is_refused(wandb: Fake, name: str) -> None:
    with pytest.raises(ValueError, match='it must be None, or name a project of Weights & Biases'):
        Compute(wandb=name)
    Compute(wandb='x' * 128)
