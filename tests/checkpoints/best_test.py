"""The best checkpoint stays beside the newest, and is the one that is read."""

from __future__ import annotations

import pathlib

import jax
import jax.numpy as jnp
import pytest

from nope.checkpoints import folders
from nope.checkpoints.best import Best, best_of
from nope.checkpoints.contents import Contents
from nope.checkpoints.errors import CheckpointError
from nope.checkpoints.manager import Checkpoints
from tests import tiny

IDENTITY = {'seed': 0}
TARGET = {'params': {'scale': jnp.zeros(3)}}


def open_in(folder: pathlib.Path, keep: int = 1) -> Checkpoints:
    return Checkpoints(folder / 'checkpoints', IDENTITY, keep=keep, clean=True)


def at(step: int) -> dict:
    return jax.tree.map(lambda leaf: leaf + step, TARGET)


def write(folder: pathlib.Path, scores: dict[int, Best | None], keep: int = 1) -> list[int]:
    """Saves steps, each with what was the best at the time; the steps that are left."""
    with open_in(folder, keep) as checkpoints:
        for step, best in scores.items():
            entry = {} if best is None else best.entry
            checkpoints.save(step, at(step), {'examples': step, **entry})
        checkpoints.wait()
        checkpoints.remove_old()
        return checkpoints.steps()


def spoil(checkpoint: pathlib.Path) -> None:
    """Cuts the files of its arrays short."""
    for path in (checkpoint / 'arrays').rglob('*'):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-8])


FIRST, SECOND = Best(2, 0.25), Best(6, 1 / 3)


def test_the_best_stays_until_there_is_a_better(tmp_path: pathlib.Path) -> None:
    assert write(tmp_path, {1: None, 2: FIRST, 3: FIRST, 4: FIRST}) == [2, 4]
    with open_in(tmp_path) as checkpoints:
        assert checkpoints.best() == FIRST
        tiny.assert_same(checkpoints.read(TARGET), at(2))
        tiny.assert_same(checkpoints.read(TARGET, 4), at(4))
        restored = checkpoints.restore(TARGET)
        assert restored is not None and restored.step == 4
        assert best_of(restored.data) == FIRST
        checkpoints.save(5, at(5), {'examples': 5, **FIRST.entry})
    assert write(tmp_path, {6: SECOND, 7: SECOND}) == [6, 7]
    with open_in(tmp_path) as checkpoints:
        assert checkpoints.best() == SECOND
        tiny.assert_same(checkpoints.read(TARGET), at(6))


def test_a_run_that_compares_none_is_read_at_its_newest(tmp_path: pathlib.Path) -> None:
    assert write(tmp_path, {1: None, 2: None}) == [2]
    with open_in(tmp_path) as checkpoints:
        assert checkpoints.best() is None
        tiny.assert_same(checkpoints.read(TARGET), at(2))
    with open_in(tmp_path / 'empty') as checkpoints:
        assert checkpoints.best() is None


def test_a_best_step_that_is_gone_is_no_longer_named(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After the newest was damaged, whose save had removed the best one before: training compares
    anew. Of what is finished the newest is read, with a warning."""
    write(tmp_path, {1: None, 2: FIRST, 3: FIRST}, keep=2)
    (folders.in_full(tmp_path / 'checkpoints') / '2').rmtree()
    with open_in(tmp_path, keep=2) as checkpoints:
        assert checkpoints.best() is None
        tiny.assert_same(checkpoints.read(TARGET), at(3))
        assert 'has no checkpoint any more: the newest, of step 3, stands' in caplog.text
        with pytest.raises(CheckpointError, match=r'no checkpoint of step 2 .*there are \[3\]'):
            checkpoints.read(TARGET, 2)
        restored = checkpoints.restore(TARGET)
        assert restored is not None and restored.data == {'examples': 3}


def test_a_damaged_best_is_set_aside_when_training_goes_on(tmp_path: pathlib.Path) -> None:
    write(tmp_path, {1: None, 2: FIRST, 3: FIRST})
    spoil(tmp_path / 'checkpoints' / '2')
    with open_in(tmp_path) as checkpoints:
        with pytest.raises(CheckpointError, match=r'checkpoint of step 2 in .* cannot be read'):
            checkpoints.read(TARGET)
        restored = checkpoints.restore(TARGET)
        assert restored is not None
        assert (restored.step, restored.data) == (3, {'examples': 3})
        assert checkpoints.steps() == [3] and checkpoints.best() is None
        tiny.assert_same(checkpoints.read(TARGET), at(3))
    assert (tmp_path / 'damaged' / '2').is_dir()


def test_a_best_that_storage_fails_to_give_stays(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {1: None, 2: FIRST, 3: FIRST})
    read = Contents.read

    def failing(self, step, *given):
        if step == 2:
            raise OSError('the network is away')
        return read(self, step, *given)

    with open_in(tmp_path) as checkpoints:
        monkeypatch.setattr(Contents, 'read', failing)
        restored = checkpoints.restore(TARGET)
        assert restored is not None and restored.step == 3
        assert checkpoints.steps() == [2, 3] and checkpoints.best() == Best(*FIRST)


def test_a_damaged_best_stays_where_nothing_else_can_be_read(tmp_path: pathlib.Path) -> None:
    write(tmp_path, {1: None, 2: FIRST, 3: FIRST})
    for step in (2, 3):
        spoil(tmp_path / 'checkpoints' / str(step))
    with open_in(tmp_path) as checkpoints:
        with pytest.raises(CheckpointError, match=r'none of the checkpoints of steps \[2, 3\]'):
            checkpoints.restore(TARGET)
        assert checkpoints.steps() == [2, 3]
