"""A model whose sequence is split over devices computes what it computes on one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.model import ModelOutput, apply
from nope.positions import DynamicNTK, Rotary
from nope.sharding import MeshConfig
from tests import tiny

QUICK = {'xla_backend_optimization_level': 0}


def on(
    mesh: jax.sharding.Mesh, length: int, kv_heads: int, attention: str = ''
) -> tuple[str, ModelOutput]:
    """The model's operations and its output, under `mesh`."""
    rotary = Rotary(scaling=DynamicNTK(factor=2.0, train_length=8))
    config = tiny.model(attention=attention, position=rotary, kv_heads=kv_heads)
    segments_BT = jnp.where(jnp.arange(length) < length // 3, 1, 2)[None].repeat(4, axis=0)
    arguments = tiny.variables(config), tiny.tokens(4, length), segments_BT
    whole = sharding.replicated(mesh)
    arguments = jax.tree.map(lambda x: jax.device_put(np.asarray(x), whole), arguments)

    def run(variables, tokens_BT, segments_BT) -> ModelOutput:
        return apply(config, variables, tokens_BT, segments_BT=segments_BT, entropy=True)

    with sharding.use(mesh):
        traced = jax.jit(run).trace(*arguments)
        return str(traced.jaxpr), traced.lower().compile(QUICK)(*arguments)


@pytest.mark.parametrize(
    ('shape', 'length', 'kv_heads', 'rings'),
    [
        ((2, 1, 1, 4), 32, 2, True),
        ((1, 2, 2, 2), 32, 2, True),
        ((1, 1, 2, 4), 32, 1, True),  # both devices of a pair have the one key/value head
        ((2, 1, 1, 4), 30, 2, False),  # four devices cannot share 30 tokens evenly
    ],
)
def test_a_split_sequence_goes_around_the_ring(
    shape: tuple[int, ...], length: int, kv_heads: int, rings: bool
) -> None:
    operations, output = on(sharding.make_mesh(MeshConfig(*shape)), length, kv_heads)
    _, expected = on(tiny.mesh(), length, kv_heads)
    tiny.assert_close(output, expected, rtol=1e-5, atol=2e-5)
    assert ('ppermute' in operations) == rings


@pytest.mark.parametrize('shape', [(2, 2, 2, 1), (8, 1, 1, 1)])
def test_a_kernel_runs_on_a_mesh(shape: tuple[int, ...]) -> None:
    """Rows (four, also over eight devices) and heads: the compiler could not divide a kernel."""
    mesh = sharding.make_mesh(MeshConfig(*shape))
    operations, output = on(mesh, 32, 2, 'pallas_tpu_interpret')
    _, expected = on(tiny.mesh(), 32, 2)
    tiny.assert_close(output, expected, rtol=1e-5, atol=2e-5)
    assert 'shard_map' in operations and 'ppermute' not in operations


def test_without_a_mesh_nothing_is_split() -> None:
    config = tiny.model(attention='')
    arguments = tiny.variables(config), tiny.tokens(2, 9)
    operations = jax.make_jaxpr(lambda v, t: apply(config, v, t).hidden)(*arguments)
    assert 'ppermute' not in str(operations)
    assert operations.out_avals[0].shape == (2, 9, config.width)
