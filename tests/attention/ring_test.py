"""A sequence split over devices has the attention of the whole one, in values and gradients."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from nope.attention import AttentionOutput, Mask, attention
from nope.attention.api import Unsupported
from nope.attention.cases import Trial, make_inputs
from nope.attention.ring import ring_attention
from tests.attention.contract import OUTPUTS, TOLERANCE, assert_close, value_and_gradients

CASES = [
    Trial('causal', 2, 160, 160, 8, 4, 8),
    Trial('one_row_a_device', 2, 4, 4, 4, 2, 8),
    Trial('bias', 2, 160, 160, 8, 4, 8, bias='buckets'),
    Trial('every_rule', 2, 160, 160, 8, 4, 8, segments='packed', window=50, bias='alibi'),
    Trial('empty_rows', 2, 120, 120, 8, 4, 8, segments='empty'),
    Trial('full', 2, 40, 120, 8, 4, 8, causal=False, bias='buckets'),
    Trial('cached', 2, 40, 120, 8, 4, 8, offset=80),
    Trial('bfloat16', 2, 160, 160, 8, 4, 8, dtype='bfloat16'),
    Trial('key_bias', 2, 160, 160, 8, 4, 8, key_bias=True),
    Trial(
        'key_bias_every_rule', 2, 160, 160, 8, 4, 8, segments='empty', window=50, bias='alibi',
        key_bias=True,
    ),
    Trial('factors', 2, 160, 160, 8, 4, 8, bias='scale_invariant'),
    Trial(
        'factors_every_rule', 2, 160, 160, 8, 4, 8, segments='packed', window=50,
        bias='scale_invariant', key_bias=True,
    ),
    Trial('key_bias_full', 2, 40, 120, 8, 4, 8, causal=False, key_bias=True),
]  # fmt: skip

# What these have, a case with every rule has too.
ALIKE = ('causal', 'bias', 'key_bias', 'factors')


def over_devices(
    q, k, v, *, mask: Mask, bias, entropy: bool, key_bias_BNS=None,
    max_logit: bool = False, implementation: str | None = None,
) -> AttentionOutput:  # fmt: skip
    """Two groups of four devices: the batch over the groups, the sequence around each ring."""
    mesh = jax.make_mesh((2, 4), ('data', 'context'), axis_types=(AxisType.Auto,) * 2)
    sharded, whole = PartitionSpec('data', 'context'), PartitionSpec()
    by_row = PartitionSpec('data', None, 'context')

    def local(q, k, v, key_bias_BNS, ids, offset, bias) -> AttentionOutput:
        here = Mask(mask.causal, *ids, mask.window, offset)
        return ring_attention(
            q, k, v, axis='context', mask=here, bias=bias, key_bias_BNS=key_bias_BNS,
            entropy=entropy, max_logit=max_logit, implementation=implementation,
        )  # fmt: skip

    function = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=(sharded, sharded, sharded, by_row, sharded, whole, whole),
        out_specs=AttentionOutput(
            sharded, by_row, by_row if entropy else None, by_row if max_logit else None
        ),
        check_vma=False,
    )
    ids = mask.q_segments_BT, mask.kv_segments_BS
    return function(q, k, v, key_bias_BNS, ids, mask.offset, bias)


@pytest.mark.parametrize('case', [
    pytest.param(case, marks=pytest.mark.slow if case.name in ALIKE else (), id=case.name)
    for case in CASES
])  # fmt: skip
def test_a_ring_is_one_device(case: Trial) -> None:
    inputs = make_inputs(case)
    one = functools.partial(attention, implementation='chunked')
    wanted = value_and_gradients(one, inputs, OUTPUTS)
    found = value_and_gradients(over_devices, inputs, OUTPUTS)
    for array, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert array.dtype == right.dtype
        assert_close(array, right, 2 * TOLERANCE[case.dtype])


def test_no_device_gathers_all_keys() -> None:
    """Keys travel from neighbour to neighbour and are gathered nowhere."""
    inputs = make_inputs(Trial('', 2, 160, 160, 8, 4, 8))
    function = functools.partial(over_devices, mask=Mask(), bias=None, entropy=True)
    lowered = jax.jit(function).lower(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
    text = lowered.compile().as_text()
    assert 'collective-permute' in text
    assert 'all-gather' not in text and 'all-to-all' not in text


def test_entropy_is_none_where_not_asked_for() -> None:
    inputs = make_inputs(CASES[0])
    function = functools.partial(over_devices, mask=Mask(), bias=None, entropy=False)
    result = jax.jit(function)(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
    assert result.entropy is None
    assert np.all(np.isfinite(result.out))


def test_the_largest_logits_are_over_all_keys() -> None:
    inputs = make_inputs(CASES[0])
    arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
    ring = functools.partial(over_devices, bias=inputs.bias, entropy=False, max_logit=True)
    found = jax.jit(ring)(*arrays, mask=inputs.mask)
    wanted = attention(*arrays, mask=inputs.mask, bias=inputs.bias, max_logit=True)
    assert_close(found.max_logit, wanted.max_logit, TOLERANCE['float32'])


@pytest.mark.usefixtures('interpreted_kernels')
@pytest.mark.parametrize(
    'implementation',
    ['pallas_tpu_interpret', pytest.param('pallas_gpu_interpret', marks=pytest.mark.slow)],
)
def test_a_ring_of_kernels(implementation: str) -> None:
    case = Trial('', 2, 160, 160, 4, 2, 8, True, 'packed', window=90, bias='buckets', key_bias=True)
    inputs = make_inputs(case)
    one = functools.partial(attention, implementation='chunked')
    wanted = value_and_gradients(one, inputs, OUTPUTS)
    ring = functools.partial(over_devices, implementation=implementation)
    found = value_and_gradients(ring, inputs, OUTPUTS)
    for array, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert_close(array, right, 2 * TOLERANCE['float32'])


def test_gradients_keep_no_shard_that_came_by() -> None:
    """Memory of a device does not grow with the number of keys that it meets."""

    def temporary(devices: int) -> int:
        mesh = jax.make_mesh((devices,), ('context',), axis_types=(AxisType.Auto,))
        sharded = PartitionSpec(None, 'context')

        @functools.partial(
            jax.shard_map, mesh=mesh, in_specs=(sharded,) * 3, out_specs=sharded, check_vma=False
        )
        def run(q, k, v):
            return ring_attention(q, k, v, axis='context').out

        place = jax.sharding.NamedSharding(mesh, sharded)
        shape = jax.ShapeDtypeStruct((1, 256 * devices, 4, 32), 'float32', sharding=place)
        gradient = jax.grad(lambda *qkv: jnp.sum(run(*qkv) ** 2), argnums=(0, 1, 2))
        memory = jax.jit(gradient).lower(shape, shape, shape).compile().memory_analysis()
        return memory.temp_size_in_bytes

    assert temporary(8) < 1.2 * temporary(2)


@pytest.mark.parametrize('name', ['reference', 'library'])
def test_only_flash_kernels_go_around(name: str) -> None:
    inputs = make_inputs(CASES[0])
    function = functools.partial(
        over_devices, mask=Mask(), bias=None, entropy=False, implementation=name
    )
    with pytest.raises(Unsupported, match=f"implementation='{name}' cannot: the sequence is split"):
        jax.jit(function)(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
