from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from nope import sharding
from nope.data import Batch
from nope.model import ModelConfig, counts
from nope.sharding import AXES, MeshConfig
from nope.training.optim import OptimizerConfig
from nope.training.state import TrainState, fresh_state
from nope.training.step import Metrics, batch_loss, make_step
from nope.variables import Variables, abstract_variables, fresh_variables
from tests import tiny

MODEL = tiny.model(attention=None)  # the implementation that is used, whatever it is
OPTIMIZER = OptimizerConfig(learning_rate=1e-2, epsilon=1e-3, weight_decay=0.1)
SHAPES = [(8, 1, 1, 1), (2, 2, 2, 1), (2, 4, 1, 1), (2, 1, 2, 2)]


def documents() -> Batch:
    """Two in every block, of unequal lengths."""
    begins = np.arange(17) == np.arange(1, 16, 2)[:, None]
    return Batch.of_documents(tiny.tokens(8, 17), begins)


def stepped(
    mesh: jax.sharding.Mesh,
    data: Any = None,
    parts: int = 1,
    model: ModelConfig = MODEL,
    optimizer: OptimizerConfig = OPTIMIZER,
) -> tuple[TrainState, Metrics]:
    """One training step from the shared variables, spread over `mesh`."""
    variables = tiny.spread(tiny.varied_lam(model), model, mesh)
    data = Batch.of_blocks(tiny.tokens(8, 17)) if data is None else data
    with sharding.use(mesh):
        state, frozen = fresh_state(variables, optimizer, mesh)
        placed = jax.tree.map(lambda leaf: leaf.sharding, state)
        step = jax.jit(make_step(model, optimizer), out_shardings=(placed, None))
        return step(state, frozen, sharding.place_micro_batches(mesh, parts, 8, data))


@functools.cache
def on_one_device() -> tuple[TrainState, Metrics]:
    return stepped(tiny.mesh())


@functools.cache
def documents_on_one_device() -> tuple[TrainState, Metrics]:
    return stepped(tiny.mesh(), documents())


def mesh_of(*shape: int | None) -> jax.sharding.Mesh:
    return sharding.make_mesh(MeshConfig(*shape))


def specs(mesh: jax.sharding.Mesh, kv_heads: int = 2) -> dict[str, PartitionSpec]:
    params = abstract_variables(tiny.model(kv_heads=kv_heads), mesh)['params']
    return {
        '/'.join(key.key for key in path): leaf.sharding.spec
        for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }


@pytest.mark.parametrize('changes', [{}, {'entropy_length': 8}], ids=['loss', 'entropy'])
def test_a_search_of_lambda_is_the_same_on_a_mesh(changes: dict[str, Any]) -> None:
    search = dataclasses.replace(OPTIMIZER, trains='lam', weight_decay=0.0, **changes)
    found, expected = (stepped(m, optimizer=search) for m in (mesh_of(2, 1, 2, 2), tiny.mesh()))
    tiny.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    'shape', [pytest.param(SHAPES[0], marks=pytest.mark.slow), *SHAPES[1:]], ids=str
)
def test_a_step_is_the_same_on_every_mesh(shape: tuple[int, ...]) -> None:
    state, metrics = stepped(mesh_of(*shape))
    expected_state, expected_metrics = on_one_device()
    tiny.assert_close(metrics, expected_metrics, rtol=1e-5)
    tiny.assert_close(state, expected_state, rtol=1e-5, atol=1e-5)
    embedding = state.trained['params']['embedding']
    _, fsdp, tensor, _ = shape
    assert embedding.addressable_shards[0].data.size == embedding.size // (fsdp * tensor)


def test_the_gradient_of_rows_that_the_mesh_does_not_divide_is_that_of_one_device() -> None:
    """Three rows over two devices, the embedding over two others."""
    batch = Batch.of_blocks(tiny.tokens(3, 17))

    def gradient(mesh: jax.sharding.Mesh) -> Variables:
        with sharding.use(mesh):
            of_variables = jax.jit(jax.grad(functools.partial(batch_loss, MODEL)))
            return of_variables(fresh_variables(MODEL, mesh, 0), batch)

    mesh = sharding.make_mesh(MeshConfig(1, 2, 2, 1), jax.devices()[:4])
    tiny.assert_close(gradient(mesh), gradient(tiny.mesh()), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    'changes',
    [
        pytest.param({'block': 'parallel'}, marks=pytest.mark.slow),
        {'block': 'post', 'qk_norm': True, 'qk_norm_over': 'projection'},
        pytest.param(
            {'block': 'both', 'norm_offset': True, 'embedding_multiplier': 32**0.5},
            marks=pytest.mark.slow,
        ),
    ],
    ids=['parallel', 'post', 'both'],
)
def test_a_step_of_other_blocks_is_the_same_on_a_mesh(changes: dict[str, Any]) -> None:
    """Norms over heads that lie on several devices too."""
    model = dataclasses.replace(MODEL, **changes)
    state, metrics = stepped(mesh_of(2, 2, 2, 1), model=model)
    expected_state, expected_metrics = stepped(tiny.mesh(), model=model)
    tiny.assert_close(metrics, expected_metrics, rtol=1e-5)
    tiny.assert_close(state, expected_state, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ('shape', 'parts'),
    [((2, 2, 2, 1), 2), pytest.param((2, 1, 1, 4), 1, marks=pytest.mark.slow)],
    ids=str,
)
def test_a_step_on_documents_apart_is_the_same_on_every_mesh(
    shape: tuple[int, ...], parts: int
) -> None:
    """Weights, segments and positions over devices of rows, heads and parts of the sequence."""
    state, metrics = stepped(mesh_of(*shape), documents(), parts)
    expected_state, expected_metrics = documents_on_one_device()
    tiny.assert_close(metrics, expected_metrics, rtol=1e-5)
    tiny.assert_close(state, expected_state, rtol=1e-5, atol=1e-5)
    assert abs(expected_metrics['loss'] - on_one_device()[1]['loss']) > 1e-3


def test_parameters_are_spread_over_fsdp_and_tensor() -> None:
    found = specs(mesh_of(2, 2, 2, 1))
    assert found['embedding'] == PartitionSpec('tensor', 'fsdp')
    assert found['head'] == PartitionSpec('fsdp', 'tensor')
    assert found['final_norm/scale'] == PartitionSpec(None)
    assert found['layers/attention/query'] == PartitionSpec(None, 'fsdp', 'tensor', None)
    assert found['layers/attention/key'] == PartitionSpec(None, 'fsdp', 'tensor', None)
    assert found['layers/attention/output'] == PartitionSpec(None, 'tensor', None, 'fsdp')
    assert found['layers/mlp/gate'] == PartitionSpec(None, 'fsdp', 'tensor')
    assert found['layers/mlp/down'] == PartitionSpec(None, 'tensor', 'fsdp')


@dataclasses.dataclass(frozen=True)
class Gpu:
    """Of a cluster: what JAX calls a slice there is a machine."""

    id: int
    slice_index: int
    platform: str = 'gpu'


def test_any_axis_reaches_over_gpu_machines() -> None:
    cluster = [Gpu(number, number // 8) for number in range(16)]
    mesh = sharding.make_mesh(MeshConfig(data=1, fsdp=None, context=2), cluster)
    assert dict(mesh.shape) == {'data': 1, 'fsdp': 8, 'tensor': 1, 'context': 2}
    assert [device.id for device in mesh.devices.flat] == list(range(16))


def test_heads_that_the_mesh_does_not_divide_stay_whole() -> None:
    found = specs(mesh_of(2, 1, 4, 1))
    assert found['layers/attention/key'] == PartitionSpec(None, 'fsdp', None, None)
    assert found['layers/attention/query'] == PartitionSpec(None, 'fsdp', 'tensor', None)


def test_lambda_is_on_every_device() -> None:
    lam = abstract_variables(MODEL, mesh_of(2, 2, 2, 1))['lam']['head']
    assert lam.sharding.is_fully_replicated


def test_tinyllama_is_spread_evenly() -> None:
    """Every matrix of the 1.1B model is divided by eight; the norms' 92,160 weights are not."""
    mesh = mesh_of(1, 4, 2, 1)
    leaves = jax.tree.leaves(abstract_variables(tiny.TINYLLAMA, mesh)['params'])
    local = sum(np.prod(leaf.sharding.shard_shape(leaf.shape)) for leaf in leaves)
    norms = (2 * 22 + 1) * 2048
    assert local == (counts.parameters(tiny.TINYLLAMA) - norms) // 8 + norms


def test_data_takes_the_devices_that_are_left() -> None:
    assert MeshConfig().sizes(8) == (8, 1, 1, 1)
    assert MeshConfig(fsdp=2, context=2).sizes(8) == (2, 2, 1, 2)
    assert MeshConfig(data=2, tensor=4).sizes(8) == (2, 1, 4, 1)
    assert MeshConfig(data=1, fsdp=2, context=None).sizes(8) == (1, 2, 1, 4)
    mesh = mesh_of(None, 2, 2, 1)
    assert dict(mesh.shape) == dict(zip(AXES, (2, 2, 2, 1), strict=True))
    assert sharding.batch_parts(mesh) == 4


@pytest.mark.parametrize(
    ('config', 'message'),
    [
        (MeshConfig(tensor=3), r'tensor=3.* takes 6 devices; there are 8'),
        (MeshConfig(data=4), r'data=4.* takes 4 devices; there are 8'),
        (MeshConfig(fsdp=16), r'fsdp=16.* takes 16 devices; there are 8'),
        (
            MeshConfig(data=None, fsdp=None),
            r'fsdp=None.* sizes must be at least 1, and one of them may',
        ),
        (MeshConfig(data=-1), r'data=-1.* sizes must be at least 1'),
    ],
)
def test_a_mesh_that_does_not_fit_is_refused(config: MeshConfig, message: str) -> None:
    with pytest.raises(ValueError, match=rf'compute\.mesh .*{message}'):
        sharding.make_mesh(config)


def test_placed_blocks_are_split_by_row() -> None:
    mesh = mesh_of(2, 2, 2, 1)
    blocks = tiny.tokens(8, 17)
    rows = sharding.put(blocks, sharding.rows(mesh))
    np.testing.assert_array_equal(rows, blocks)
    assert rows.addressable_shards[0].data.shape == (2, 17)


def test_a_placed_batch_is_split_by_row() -> None:
    batch = Batch.of_blocks(tiny.tokens(8, 17))
    weighted = batch._replace(weights=np.arange(8 * 16, dtype=np.float32).reshape(8, 16))
    micro = sharding.place_micro_batches(mesh_of(2, 2, 2, 1), 2, 8, weighted)
    assert isinstance(micro, Batch) and micro.segments is micro.positions is None
    for found, array in zip(micro[:3], weighted[:3], strict=True):
        np.testing.assert_array_equal(found, array.reshape(2, 4, 16))
        assert found.addressable_shards[0].data.shape == (2, 1, 16)
