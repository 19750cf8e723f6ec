"""A model on a mesh, its sequence or its heads split over devices, computes what it computes on
one device."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.attention import Mask
from nope.attention.cases import Trial, make_inputs
from nope.data import Batch
from nope.model import LayerKind, ModelConfig, ModelOutput, apply, context
from nope.positions import Alibi, DynamicNTK, Kerple, RoPE, ScaleInvariant, T5Bias
from nope.sharding import MeshConfig
from nope.training.step import batch_loss
from nope.variables import Variables
from tests import tiny

ROPE = tiny.model(attention=None, position=RoPE(scaling=DynamicNTK(2.0, train_length=8)))
T5 = tiny.model(attention=None, position=T5Bias(buckets=8, max_distance=12))
BIASES = (LayerKind(T5.position), LayerKind(Alibi(), window=9))


def on(mesh: jax.sharding.Mesh, config: ModelConfig, length: int) -> tuple[str, ModelOutput]:
    """The model's operations and its output, under `mesh`."""
    segments_BT = np.where(np.arange(length) < length // 3, 1, 2)[None].repeat(4, axis=0)

    def run(variables: Variables, tokens_BT: jax.Array, segments_BT: jax.Array) -> ModelOutput:
        return apply(
            config, variables, tokens_BT, segments_BT=segments_BT, entropy=True, max_logit=True
        )

    return compiled(mesh, run, tiny.variables(config), tiny.tokens(4, length), segments_BT)


def compiled(mesh: jax.sharding.Mesh, function: Any, *arguments: Any) -> tuple[str, Any]:
    """The operations and the result of `function` under `mesh`."""
    whole = sharding.replicated(mesh)
    arguments = jax.tree.map(lambda x: jax.device_put(np.asarray(x), whole), arguments)
    with sharding.use(mesh):
        traced = jax.jit(function).trace(*arguments)
        return str(traced.jaxpr), traced.lower().compile()(*arguments)


@functools.cache
def on_one_device(config: ModelConfig, length: int) -> ModelOutput:
    return on(tiny.mesh(), config, length)[1]


def mesh_of(*shape: int) -> jax.sharding.Mesh:
    return sharding.make_mesh(MeshConfig(*shape))


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
    config = tiny.model(attention=None, position=ROPE.position, kv_heads=kv_heads)
    operations, output = on(mesh_of(*shape), config, length)
    tiny.assert_close(output, on_one_device(config, length), rtol=1e-5, atol=2e-5)
    assert ('ppermute' in operations) == rings


def test_factors_and_sinks_are_those_of_one_device() -> None:
    """Lines by distance around the ring, and numbers for each head where heads are divided."""
    kinds = LayerKind(ScaleInvariant(tau=3.0)), LayerKind(Kerple(), window=9)
    config = tiny.model(
        attention=None, pattern=kinds, sinks=True, output_gate='head', temperature='adaptive'
    )
    operations, output = on(mesh_of(1, 2, 2, 2), config, 32)
    tiny.assert_close(output, on_one_device(config, 32), rtol=1e-5, atol=2e-5)
    assert 'ppermute' in operations


def test_entropies_of_all_devices_set_a_temperature() -> None:
    config = tiny.model(attention=None, temperature='entropy')
    operations, output = on(mesh_of(1, 2, 2, 2), config, 32)
    tiny.assert_close(output, on_one_device(config, 32), rtol=1e-5, atol=2e-5)
    assert 'ppermute' in operations


@pytest.mark.usefixtures('interpreted_kernels')
@pytest.mark.parametrize('shape', [(2, 2, 2, 1), (8, 1, 1, 1)])
def test_a_kernel_runs_on_a_mesh(shape: tuple[int, ...]) -> None:
    """Rows (four, also over eight devices) and heads: the compiler could not divide a kernel."""
    kernel = tiny.model(attention='pallas_tpu_interpret', position=ROPE.position)
    operations, output = on(mesh_of(*shape), kernel, 32)
    tiny.assert_close(output, on_one_device(ROPE, 32), rtol=1e-5, atol=2e-5)
    assert 'shard_map' in operations and 'ppermute' not in operations


@pytest.mark.parametrize('shape', [(2, 1, 4, 1), (1, 1, 2, 4)], ids=['heads', 'heads, sequence'])
def test_every_device_has_the_biases_of_its_heads_and_tokens(shape: tuple[int, ...]) -> None:
    """Also where two devices have a key/value head's queries. Layers are of both kinds."""
    config = tiny.model(attention=None, pattern=BIASES)
    operations, output = on(mesh_of(*shape), config, 32)
    tiny.assert_close(output, on_one_device(config, 32), rtol=1e-5, atol=2e-5)
    assert ('ppermute' in operations) == (shape[3] > 1)


def test_the_table_of_biases_gets_its_gradient_from_all_devices() -> None:
    """And all other parameters theirs."""
    gradient = jax.value_and_grad(functools.partial(batch_loss, T5))
    variables, blocks = tiny.varied_lam(T5), Batch.of_blocks(tiny.tokens(4, 33))
    _, (loss, found) = compiled(mesh_of(1, 1, 2, 4), gradient, variables, blocks)
    _, (loss_expected, expected) = compiled(tiny.mesh(), gradient, variables, blocks)
    np.testing.assert_allclose(loss, loss_expected, rtol=1e-6)
    tiny.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert np.all(np.abs(expected['params']['position']) > 1e-5)


@pytest.mark.parametrize(
    'shape', [(2, 1, 2, 2), (1, 1, 2, 4), (8, 1, 1, 1)], ids=['all', 'heads, sequence', 'rows']
)
def test_a_key_bias_is_split_with_its_keys_and_heads(shape: tuple[int, ...]) -> None:
    """Values and gradients, its own among them; six rows are filled up to eight."""
    inputs = make_inputs(Trial('', 6, 32, 32, 4, 2, 8, segments='packed', key_bias=True))

    def pulled(arrays: tuple[jax.Array, ...], mask: Mask) -> tuple[jax.Array, Any]:
        q, k, v, key_bias = arrays
        found = context.attend(q, k, v, mask=mask, bias=None, key_bias_BNS=key_bias, entropy=True)
        loss = jnp.sum(found.out * inputs.d_out_BTNH) + jnp.sum(found.lse * inputs.d_lse_BNT)
        return loss + jnp.sum(found.entropy * inputs.d_entropy_BNT), found

    gradient = jax.grad(pulled, has_aux=True)
    arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.key_bias_BNS
    operations, found = compiled(mesh_of(*shape), gradient, arrays, inputs.mask)
    _, expected = compiled(tiny.mesh(), gradient, arrays, inputs.mask)
    tiny.assert_close(found, expected, rtol=1e-5, atol=2e-5)
    assert ('ppermute' in operations) == (shape[3] > 1)


@pytest.mark.parametrize('weights', ['entmax', 'stick_breaking'])
def test_dense_weights_are_divided_by_rows_and_heads_alone(weights: str) -> None:
    config = tiny.model(attention=None, weights=weights, position=Alibi())
    _, output = on(mesh_of(2, 2, 2, 1), config, 16)
    tiny.assert_close(output, on_one_device(config, 16), rtol=1e-5, atol=2e-5)


def test_without_a_mesh_nothing_is_split() -> None:
    config = tiny.model(attention=None)
    arguments = tiny.variables(config), jnp.asarray(tiny.tokens(2, 9))
    operations = jax.make_jaxpr(lambda v, t: apply(config, v, t).hidden)(*arguments)
    assert 'ppermute' not in str(operations)
    assert operations.out_avals[0].shape == (2, 9, config.width)
