"""Metrics in Weights & Biases' own files, in its offline mode."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from nope.training.train import Interrupted
from tests.training.train_test import COMPUTE, PRETRAIN, run


def test_each_attempt_leaves_a_file_of_the_same_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('WANDB_MODE', 'offline')
    folder = tmp_path / 'small-0123456789ab'
    compute = dataclasses.replace(COMPUTE, wandb='mine', monitor=3)
    with pytest.raises(Interrupted):
        run(folder, PRETRAIN, stop_after=4, compute=compute)
    first = files(folder)
    run(folder, PRETRAIN, compute=compute)
    assert len(first) == 1 and len(files(folder)) == 2
    for path in files(folder):
        assert path.name.startswith(f'run-{folder.name}-')
        content = path.read_bytes()
        names = (b'learning_rate', b'entropy/0', b'max_logit/0', b'mine')
        assert all(name in content for name in names)


def files(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(folder.glob('wandb/offline-run-*/*.wandb'))
