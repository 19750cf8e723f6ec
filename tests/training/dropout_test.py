"""Training with dropout: the same on any mesh, in any micro-batches, rematerialised and resumed."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from nope import sharding
from nope.data import Batch
from nope.model import ModelConfig
from nope.positions import T5Bias
from nope.sharding import MeshConfig
from nope.training.config import Compute, TrainConfig
from nope.training.optim import OptimizerConfig
from nope.training.state import TrainState, fresh_state
from nope.training.step import Metrics, make_step
from nope.training.train import Interrupted, train
from nope.variables import Variables
from tests import tiny
from tests.training.train_test import batches_of

ROWS, SEED = 8, 5
MODEL = tiny.model(
    position=T5Bias(8, 12),
    mlp='plain',
    activation='relu',
    tied_head=True,
    dropout=0.1,
    attention_dropout=0.1,
)
OPTIMIZER = OptimizerConfig(learning_rate=1e-2, epsilon=1e-3, weight_decay=0.1)


def stepper(model: ModelConfig = MODEL, mesh: Any = None, parts: int = 1) -> Any:
    """(seed, step) -> state and metrics after one step from the shared variables."""
    mesh = tiny.mesh() if mesh is None else mesh
    variables = tiny.spread(tiny.varied_lam(model), model, mesh)
    state, frozen = fresh_state(variables, OPTIMIZER, mesh)
    placed = jax.tree.map(lambda leaf: leaf.sharding, state)
    step = jax.jit(make_step(model, OPTIMIZER), out_shardings=(placed, None))
    data = sharding.place_micro_batches(mesh, parts, ROWS, Batch.of_blocks(tiny.tokens(ROWS, 17)))

    def run(seed: int = SEED, number: int = 0) -> tuple[TrainState, Metrics]:
        begun = state.replace(step=sharding.put(np.int32(number), state.step.sharding))
        with sharding.use(mesh):
            return step(begun, frozen, data, np.uint32(seed))

    return run


@functools.cache
def on_one_device() -> Any:
    return stepper()


@pytest.mark.parametrize(
    ('changes', 'shape', 'parts'),
    [
        ({'remat': 'full'}, (1, 1, 1, 1), 2),
        ({'remat': 'elementwise'}, (1, 1, 1, 1), 1),
        ({}, (2, 2, 2, 1), 2),
    ],
    ids=['layers recomputed, micro-batches', 'masks recomputed', 'mesh'],
)
def test_a_step_has_the_same_masks(
    changes: dict[str, Any], shape: tuple[int, ...], parts: int
) -> None:
    devices = jax.devices()[: int(np.prod(shape))]
    mesh = sharding.make_mesh(MeshConfig(*shape), devices)
    state, metrics = stepper(dataclasses.replace(MODEL, **changes), mesh, parts)()
    expected, expected_metrics = on_one_device()()
    tiny.assert_close(metrics, expected_metrics, rtol=1e-5)
    tiny.assert_close(state, expected, rtol=1e-5, atol=1e-5)


def test_masks_follow_the_seed_and_the_step() -> None:
    run = on_one_device()
    losses = [float(run(*at)[1]['loss']) for at in ((SEED, 0), (SEED, 0), (SEED, 1), (SEED + 1, 0))]
    assert losses[0] == losses[1]
    assert len(set(losses)) == 3


def test_a_search_of_lambda_draws_no_masks() -> None:
    data = Batch.of_blocks(tiny.tokens(ROWS, 9)[None])

    def traced(trains: str, model: ModelConfig) -> str:
        optimizer = dataclasses.replace(OPTIMIZER, trains=trains)
        state, frozen = fresh_state(tiny.variables(model), optimizer, tiny.mesh())
        return str(jax.make_jaxpr(make_step(model, optimizer))(state, frozen, data))

    plain = dataclasses.replace(MODEL, dropout=0.0, attention_dropout=0.0)
    assert 'random' not in traced('params', plain)
    assert 'random' not in traced('lam', MODEL)


CONFIG = TrainConfig((16, 8), batch_size=4, steps=4, optimizer=OPTIMIZER)


def trained(folder: pathlib.Path, stop_after: int | None = None, **other: Any) -> Variables:
    asked = iter(range(1, 100))
    given = {'seed': SEED, 'compute': Compute(checkpoint_every=100)} | other
    return train(
        MODEL,
        CONFIG,
        given.pop('compute'),
        mesh=tiny.mesh(),
        initial=functools.partial(tiny.variables, MODEL),
        batches=batches_of(CONFIG),
        folder=folder,
        identity={'seed': 0},
        title='test',
        should_stop=lambda: next(asked) == stop_after,
        **given,
    )


def test_a_resumed_run_is_bitwise_the_uninterrupted_one(tmp_path: pathlib.Path) -> None:
    whole = trained(tmp_path / 'whole')
    with pytest.raises(Interrupted, match='stopped at step 3'):
        trained(tmp_path / 'stopped', stop_after=3)
    tiny.assert_same(trained(tmp_path / 'stopped'), whole)
    other = trained(tmp_path / 'other', seed=SEED + 1)
    assert np.any(np.asarray(other['params']['embedding']) != whole['params']['embedding'])
