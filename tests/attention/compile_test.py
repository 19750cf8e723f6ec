"""The kernels compile for TPUs and GPUs that are not there, in memory linear in length.

Real compilations: a block that does not fit, a layout that the hardware lacks or a program too
large for the device's memory is an error here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nope.attention import AttentionOutput, attention
from nope.attention.api import BACKENDS, choose
from nope.attention.backend import describe
from nope.attention.cases import LENGTH_CASES, Inputs, Trial, abstract_inputs
from nope.attention.ring import ring_attention
from nope.runtime import targets
from tests.attention.contract import slow_but

pytestmark = pytest.mark.compile

NEWEST = [('v5e:1x1', 'pallas_tpu'), ('h200', 'mosaic_gpu')]
# That kernel does not change any more.
EVERY_KIND = [*NEWEST, pytest.param('a100', 'pallas_gpu', marks=pytest.mark.slow)]
TARGETS = [
    *EVERY_KIND,
    # Other generations of these, or of an architecture that another name stands for.
    *(
        pytest.param(*target, marks=pytest.mark.slow)
        for target in (
            ('v5p:1x1x1', 'pallas_tpu'),
            ('v6e:1x1', 'pallas_tpu'),
            ('h100', 'pallas_gpu'),
            ('h100', 'mosaic_gpu'),
            ('h200', 'pallas_gpu'),
        )
    ),
]
VECTOR_MEMORY = 128 * 2**20
# One of every kind; a model's sizes and others.
KINDS = [
    Trial('float32', 1, 2048, 2048, 32, 4, 64),
    Trial('float16', 1, 1024, 1024, 4, 4, 64, dtype='float16'),
    Trial('packed', 2, 2048, 2048, 32, 4, 64, segments='packed', dtype='bfloat16'),
    Trial('window', 1, 4096, 4096, 32, 4, 64, window=1000, dtype='bfloat16'),
    Trial('cached', 2, 100, 3000, 32, 4, 64, offset=2900, dtype='bfloat16'),
    Trial('decode', 2, 1, 16384, 32, 4, 64, offset=16383, dtype='bfloat16'),
    Trial('decode_odd', 2, 3, 777, 6, 6, 80, offset=700, dtype='bfloat16'),
    Trial('full', 2, 999, 1555, 16, 16, 32, causal=False, dtype='bfloat16'),
    Trial('wide', 1, 1000, 1000, 8, 1, 256, dtype='bfloat16'),
    Trial('wide_float32', 1, 1000, 1000, 8, 1, 256),
    Trial('alibi', 2, 2048, 2048, 32, 32, 128, bias='alibi', dtype='bfloat16'),
    Trial('long', 1, 2**18, 2**18, 2, 1, 64, dtype='bfloat16'),
    Trial('every_rule', 2, 900, 2600, 16, 8, 64, True, 'packed', 'bfloat16', 700, 1500, 'buckets'),
    Trial('key_bias', 2, 2048, 2048, 32, 4, 64, dtype='bfloat16', key_bias=True),
    Trial('key_bias_decode', 2, 1, 16384, 32, 4, 64, dtype='bfloat16', offset=16383, key_bias=True),
    Trial('key_bias_wide', 1, 1000, 1000, 8, 2, 256, key_bias=True),
    Trial(
        'key_bias_alibi', 2, 900, 2600, 16, 8, 128, True, 'packed', 'bfloat16', 700, 1500, 'alibi',
        True,
    ),
    Trial(
        'key_bias_every_rule', 2, 900, 2600, 16, 8, 64, True, 'packed', 'bfloat16', 700, 1500,
        'buckets', True,
    ),
    Trial('factors', 2, 2048, 2048, 32, 4, 64, dtype='bfloat16', bias='scale_invariant'),
    Trial(
        'factors_every_rule', 2, 900, 2600, 16, 8, 64, True, 'packed', 'bfloat16', 700, 1500,
        'scale_invariant', True,
    ),
    Trial('factors_128', 1, 2048, 2048, 16, 2, 128, dtype='bfloat16', bias='scale_invariant'),
    Trial('factors_wide', 1, 1000, 1000, 8, 2, 256, bias='scale_invariant'),
]  # fmt: skip
# Those that between them have every operand and rule, one query and many, the shortest and the
# longest rows, float32, bfloat16 and the widest heads.
COVERING = (
    'float32', 'window', 'decode', 'full', 'wide', 'alibi', 'long', 'every_rule', 'key_bias_alibi',
    'key_bias_every_rule', 'factors_every_rule',
)  # fmt: skip
# Compiled with the largest logits too.
LARGEST = ('packed', 'decode', 'alibi')


def mesh_of(topology: str) -> Mesh:
    """One device; the test is skipped where its compiler is missing."""
    needed = 'libtpu' if topology.startswith('v') else 'jax_cuda13_plugin'
    if importlib.util.find_spec(needed) is None:
        # Those for GPUs are for Python 3.12 and newer.
        can_be_had = needed == 'libtpu' or sys.version_info >= (3, 12)
        assert not ('NOPE_COMPILERS' in os.environ and can_be_had), f'{needed} is missing'
        pytest.skip(f'{needed} is not installed')
    return Mesh(np.array(targets.devices(topology)), ('x',), axis_types=(AxisType.Auto,))


def compiled(
    topology: str, implementation: str, case: Trial, *, max_logit: bool = False
) -> jax.stages.Compiled:
    """Forward and backward from every output but the largest logits, the offset an argument."""
    mesh = mesh_of(topology)

    def run(inputs: Inputs):
        def attend(q, k, v, bias, key_bias) -> AttentionOutput:
            return attention(
                q, k, v, mask=inputs.mask, bias=bias, key_bias_BNS=key_bias, entropy=True,
                max_logit=max_logit, implementation=implementation,
            )  # fmt: skip

        arguments = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.bias, inputs.key_bias_BNS
        result, back = jax.vjp(attend, *arguments)
        d_out_BTNH = inputs.d_out_BTNH.astype(result.out.dtype)
        largest = None if result.max_logit is None else jnp.zeros_like(result.max_logit)
        by_row = inputs.d_lse_BNT, inputs.d_entropy_BNT, largest
        return result, back(AttentionOutput(d_out_BTNH, *by_row))

    placed = abstract_inputs(case, NamedSharding(mesh, PartitionSpec()))
    with jax.set_mesh(mesh):
        call = describe(
            placed.q_BTNH, placed.k_BSKH, placed.mask, placed.bias, entropy=True,
            key_bias=case.key_bias, max_logit=max_logit,
        )  # fmt: skip
        reason = BACKENDS[implementation].unsupported(call)
        if reason is not None:
            pytest.skip(f'{implementation} cannot: {reason}')
        return jax.jit(run).lower(placed).compile()


@pytest.mark.parametrize(
    ('topology', 'implementation'), [('v5e:2x2', 'pallas_tpu'), ('h200:4', 'mosaic_gpu')]
)
def test_shards_of_a_ring_travel_while_kernels_work(topology: str, implementation: str) -> None:
    mesh, sharded = mesh_of(topology), PartitionSpec(None, 'x')

    def loss(*shards: jax.Array) -> jax.Array:
        def local(q, k, v) -> jax.Array:
            return ring_attention(q, k, v, axis='x', implementation=implementation).out

        specs = {'in_specs': (sharded,) * 3, 'out_specs': sharded}
        out_BTNH = jax.shard_map(local, mesh=mesh, check_vma=False, **specs)(*shards)
        return jnp.sum(out_BTNH, dtype='float32')

    place = NamedSharding(mesh, sharded)
    shape = jax.ShapeDtypeStruct((1, 4096, 8, 128), 'bfloat16', sharding=place)
    gradients = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))
    program = gradients.lower(shape, shape, shape).compile().as_text()
    # Instructions stand in the order in which they start.
    travels = r'collective-permute-(start|done)\(|custom-call\(.*(?:tpu_custom_call|mosaic_gpu)'
    turns = [
        [word or 'kernel' for word in re.findall(travels, body)]
        for body in program.split('\n}')
        if 'collective-permute-start(' in body and 'ENTRY' not in body
    ]
    assert len(turns) == 2  # forward and backward
    for turn in turns:
        assert turn[0] == 'start' and turn[-1] == 'done' and 'kernel' in turn
        assert turn.index('kernel') > max(i for i, word in enumerate(turn) if word == 'start')
        assert turn.index('done') > max(i for i, word in enumerate(turn) if word == 'kernel')


@pytest.mark.parametrize(
    'lengths', [(32768, 131072), pytest.param((2048, 8192), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize('head_dim', [pytest.param(64, marks=pytest.mark.slow), 128])
@pytest.mark.parametrize(('topology', 'implementation'), TARGETS)
def test_memory_is_linear_in_length(
    topology: str, implementation: str, head_dim: int, lengths: tuple[int, int]
) -> None:
    temporary = {}
    for case in LENGTH_CASES:
        if case.head_dim == head_dim and case.queries in lengths:
            memory = compiled(topology, implementation, case).memory_analysis()
            temporary[case.queries] = memory.temp_size_in_bytes
            # A few arrays as large as the arguments, next to which [N, T, T] would stand out.
            assert memory.temp_size_in_bytes < 4 * memory.argument_size_in_bytes
    # Some of it is in the chip's vector memory, which is not counted.
    short, long = lengths
    assert temporary[long] <= long // short * (temporary[short] + VECTOR_MEMORY)


@pytest.mark.parametrize('case', slow_but(COVERING, KINDS))
@pytest.mark.parametrize(('topology', 'implementation'), EVERY_KIND)
def test_every_kind_compiles(topology: str, implementation: str, case: Trial) -> None:
    memory = compiled(topology, implementation, case).memory_analysis()
    dense = 4 * case.batch * case.heads * case.queries * case.keys
    assert memory.temp_size_in_bytes < max(dense / 4, 64 * 2**20)


@pytest.mark.parametrize('case', [
    Trial('plain', 2, 2048, 2048, 32, 4, 64, dtype='bfloat16'),
    Trial('window', 1, 4096, 4096, 32, 4, 128, window=1000, dtype='bfloat16'),
    Trial('wide', 1, 1024, 1024, 8, 1, 256, dtype='bfloat16'),
    Trial('longest', 1, 16384, 16384, 32, 4, 64, dtype='bfloat16'),
], ids=lambda case: case.name)  # fmt: skip
@pytest.mark.parametrize(('topology', 'chosen'), [
    ('v5e:1x1', 'library'), pytest.param('v6e:1x1', 'library', marks=pytest.mark.slow),
    ('h200', 'mosaic_gpu'), pytest.param('a100', 'pallas_gpu', marks=pytest.mark.slow),
])  # fmt: skip
def test_plain_attention_compiles_as_it_is_chosen(topology: str, chosen: str, case: Trial) -> None:
    """On a GPU with what takes cuDNN's place in a process without one."""
    mesh = mesh_of(topology)
    chosen = 'pallas_gpu' if chosen == 'mosaic_gpu' and case.head_dim > 128 else chosen

    def run(inputs: Inputs):
        def attend(q, k, v) -> jax.Array:
            return attention(q, k, v, mask=inputs.mask, lse=False).out

        out, back = jax.vjp(attend, inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
        return out, back(inputs.d_out_BTNH.astype(out.dtype))

    placed = abstract_inputs(case, NamedSharding(mesh, PartitionSpec()))
    with jax.set_mesh(mesh):
        call = describe(placed.q_BTNH, placed.k_BSKH, placed.mask, None, False, lse=False)
        assert choose(call, None).name == chosen
        memory = jax.jit(run).lower(placed).compile().memory_analysis()
    dense = 4 * case.batch * case.heads * case.queries * case.keys
    assert memory.temp_size_in_bytes < max(dense / 2, 64 * 2**20)


@pytest.mark.parametrize(('topology', 'implementation'), EVERY_KIND)
@pytest.mark.parametrize(
    'case', slow_but(LARGEST[1:], [case for case in KINDS if case.name in LARGEST])
)
def test_kernels_with_largest_logits_compile(
    topology: str, implementation: str, case: Trial
) -> None:
    program = compiled(topology, implementation, case, max_logit=True)
    plain = compiled(topology, implementation, case)
    more = 4 * case.batch * case.heads * case.queries  # bytes of float32, one a row
    outputs = [x.memory_analysis().output_size_in_bytes for x in (program, plain)]
    assert outputs[0] - outputs[1] >= more
