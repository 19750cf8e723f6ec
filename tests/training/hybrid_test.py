"""A model with layers of Mamba-2 is trained and searched as any other."""

from __future__ import annotations

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from nope import sharding
from nope.model import LayerKind
from nope.model.lam import LogLength
from nope.model.mixers import Mamba2
from nope.training.config import TrainConfig, check_mesh
from nope.training.train import Interrupted, train
from nope.variables import Variables, lam_of
from tests import tiny
from tests.training.train_test import COMPUTE, PRETRAIN, SEARCH, batches_of

HYBRID = tiny.model(
    layers=2, pattern=(LayerKind(mixer=Mamba2(4, 8, 6)), LayerKind()), lam=LogLength(train_length=8)
)


def trained(folder: pathlib.Path, config: TrainConfig, stop_after: int | None = None) -> Variables:
    asked = iter(range(1, 1000))
    return train(
        HYBRID,
        config,
        COMPUTE,
        mesh=tiny.mesh(),
        initial=lambda: tiny.variables(HYBRID),
        batches=batches_of(config),
        folder=folder,
        identity={'seed': 0},
        title='test',
        should_stop=lambda: next(asked) == stop_after,
    )


@pytest.mark.parametrize('config', [PRETRAIN, SEARCH], ids=['pretraining', 'search'])
def test_a_resumed_run_is_bitwise_the_uninterrupted_one(
    config: TrainConfig, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(Interrupted, match='stopped at step 3, saved in'):
        trained(tmp_path / 'stopped', config, stop_after=3)
    found = trained(tmp_path / 'stopped', config)
    whole = trained(tmp_path / 'whole', config)
    tiny.assert_same(found, whole)
    before, after = (v['params']['layers']['0']['mamba2'] for v in (tiny.variables(HYBRID), whole))
    moved = {name: bool(np.any(np.asarray(after[name]) != before[name])) for name in before}
    assert set(moved.values()) == {config.optimizer.trains == 'params'}, moved


def test_a_mesh_that_splits_sequences_is_refused_by_its_field() -> None:
    mesh = sharding.make_mesh(sharding.MeshConfig(context=2), jax.devices()[:2])
    message = r"^compute\.mesh\.context is 2; .* model\.pattern\[0\]\.mixer is 'mamba2'"
    with pytest.raises(ValueError, match=message):
        check_mesh(HYBRID, PRETRAIN, COMPUTE, mesh)


def test_a_search_moves_lambda_of_layers_with_attention(tmp_path: pathlib.Path) -> None:
    found = lam_of(trained(tmp_path, dataclasses.replace(SEARCH, steps=3)))
    assert found.shape == (1, 4) and np.any(np.asarray(found) != 0)
