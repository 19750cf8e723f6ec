"""The GPU kernels keep the contract in interpret mode, and lower to Triton without a GPU."""

from __future__ import annotations

import collections
import sys

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AttentionOutput, Buckets, Mask, attention
from nope.attention.backend import Call
from nope.attention.cases import Inputs, Trial, make_inputs
from nope.attention.flash import flash_attention
from nope.attention.pallas_gpu import BACKEND, PallasGpu, memory
from tests.attention.cases import TEST_CASES
from tests.attention.contract import AttentionContract, assert_agrees
from tests.attention.devices import on_device
from tests.attention.factor_contract import FactorContract
from tests.attention.key_bias_contract import KeyBiasContract
from tests.interpreted import PALLAS_GPU

INTERPRET = PALLAS_GPU.name
pytestmark = pytest.mark.usefixtures('interpreted_kernels')


# The kernel does not change any more and has run on a GPU: without a marker are tests of what it
# shares with others, the inputs, the outputs and the choice.
SHARED = ('ragged', 'cached_one_query', 'every_rule', 'float16')


@pytest.mark.parametrize(
    'case', [case for case in TEST_CASES if case.name in SHARED], ids=lambda case: case.name
)
def test_agrees_with_the_definition(case: Trial) -> None:
    assert_agrees(INTERPRET, case)


@pytest.mark.slow
class TestPallasGpu(AttentionContract):
    implementation = INTERPRET


@pytest.mark.slow
class TestKeyBias(KeyBiasContract):
    implementation = INTERPRET


@pytest.mark.slow
class TestFactors(FactorContract):
    implementation = INTERPRET


@pytest.mark.parametrize(('head_dim', 'dtype'), [
    (100, 'bfloat16'),
    *(pytest.param(*sizes, marks=pytest.mark.slow)
      for sizes in [(24, 'float32'), (24, 'bfloat16'), (100, 'float32'), (256, 'float32'),
                    (256, 'bfloat16')]),
])  # fmt: skip
def test_head_dims(head_dim: int, dtype: str) -> None:
    """Blocks are chosen by the head dim, and are powers of two, which it need not be."""
    assert_agrees(INTERPRET, Trial('', 1, 70, 70, 4, 2, head_dim, dtype=dtype, bias='buckets'))


@pytest.mark.parametrize('case', [
    Trial('groups_of_three', 1, 3, 500, 6, 2, 8, offset=490, window=300, bias='alibi'),
    *(pytest.param(case, marks=pytest.mark.slow) for case in (
        Trial('one_query', 1, 1, 700, 8, 2, 16, offset=600),
        Trial('seven_queries', 2, 7, 300, 4, 1, 8, offset=280, segments='empty'),
        Trial('full', 1, 2, 300, 4, 1, 8, causal=False, window=90, bias='buckets'),
        Trial('bfloat16', 1, 1, 900, 8, 2, 16, offset=899, dtype='bfloat16'),
    )),
], ids=lambda case: case.name)  # fmt: skip
def test_decoding(case: Trial) -> None:
    """Heads of a group as rows, keys in parts."""
    assert_agrees(INTERPRET, case)


def call(**changes) -> Call:
    usual = Call(
        'gpu', 'NVIDIA H100 80GB HBM3', 2, 64, 64, 8, 4, 64, 'bfloat16', True, None, False, False,
        None, True,
    )  # fmt: skip
    return Call(**{**vars(usual), **changes})


def test_says_what_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu, interpreted = BACKEND.unsupported, PALLAS_GPU.unsupported
    assert on_gpu(call()) is None
    for kind in ('NVIDIA A100-SXM4-40GB', 'NVIDIA GeForce RTX 4090', 'NVIDIA RTX 2000 Ada'):
        assert on_gpu(call(device_kind=kind)) is None
    for kind in ('Tesla V100-SXM2-16GB', 'Tesla T4', 'NVIDIA GeForce RTX 2080 Ti'):
        assert 'Ampere' in str(on_gpu(call(device_kind=kind)))
    assert 'tpu' in str(on_gpu(call(platform='tpu')))
    assert 'AMD' in str(on_gpu(call(device_kind='AMD Instinct MI300X')))
    assert interpreted(call(platform='cpu', device_kind='cpu')) is None
    for unsupported in (on_gpu, interpreted):
        assert '512' in str(unsupported(call(head_dim=512)))
    monkeypatch.setitem(sys.modules, memory.TRITON, None)
    for unsupported in (on_gpu, interpreted):
        assert 'Triton' in str(unsupported(call()))


@pytest.mark.parametrize('causal', [True, False])
def test_blocks_out_of_sight_are_not_visited(causal: bool) -> None:
    """NaN in their keys and values reaches neither outputs nor gradients of those beyond."""
    inputs = make_inputs(Trial('', 1, 256, 256, 4, 2, 8, causal=causal, window=33))
    # Queries from 128 on see keys from 96 on, and no block has more than 64 rows.
    early_S = jnp.arange(256) < 64
    k, v = (
        jnp.where(early_S[None, :, None, None], jnp.nan, x) for x in (inputs.k_BSKH, inputs.v_BSKH)
    )

    def at(q):
        result = attention(q, k, v, mask=inputs.mask, implementation=INTERPRET)
        return jnp.sum(result.out[:, 128:]), result.out

    (_, out), d_q = jax.jit(jax.value_and_grad(at, has_aux=True))(inputs.q_BTNH)
    assert np.all(np.isfinite(np.asarray(out[:, 128:])))
    assert np.all(np.isfinite(np.asarray(d_q[:, 128:])))
    assert np.all(np.isnan(np.asarray(out[:, :64])))


def primitives(jaxpr: jax.extend.core.Jaxpr) -> collections.Counter[str]:
    """Operations by name, those of kernels and loops among them."""
    found = collections.Counter(equation.primitive.name for equation in jaxpr.eqns)
    for equation in jaxpr.eqns:
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            found += primitives(inner)
    return found


def backward(inputs: Inputs) -> jax.extend.core.Jaxpr:
    """Forward and backward for an H100."""

    def attend(q, k, v, key_bias) -> AttentionOutput:
        return flash_attention(
            PallasGpu(), q, k, v, mask=inputs.mask, bias=None, key_bias_BNS=key_bias, entropy=True
        )

    def run(*arrays):
        result, back = jax.vjp(attend, *arrays)
        return back(result)

    arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.key_bias_BNS
    with on_device('NVIDIA H100', 'gpu'):
        return jax.make_jaxpr(run)(*arrays).jaxpr


@pytest.mark.parametrize(('case', 'stores'), [
    (Trial('even', 1, 256, 256, 4, 2, 64, key_bias=True), {'swap': 7}),
    (Trial('ragged', 2, 100, 100, 4, 2, 64, key_bias=True), {'masked_swap': 7}),
    (Trial('odd_head_dim', 2, 128, 128, 4, 2, 24), {'masked_swap': 4, 'swap': 2}),
], ids=lambda x: getattr(x, 'name', ''))  # fmt: skip
def test_nothing_is_stored_beyond_an_end(case: Trial, stores: dict[str, int]) -> None:
    """A GPU would store it in the next row, head or sequence; the interpreter drops it."""
    found = primitives(backward(make_inputs(case)))
    assert {name: found[name] for name in ('swap', 'masked_swap') if found[name]} == stores


def warps(jaxpr: jax.extend.core.Jaxpr) -> dict[str, int]:
    """Of each kernel."""
    found = {}
    for equation in jaxpr.eqns:
        if equation.primitive.name == 'pallas_call':
            found[str(equation.params['name'])] = equation.params['compiler_params'].num_warps
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            found |= warps(inner)
    return found


@pytest.mark.parametrize(('head_dim', 'dtype', 'expected'), [
    (8, 'float16', 4), (16, 'bfloat16', 4), (32, 'bfloat16', 8), (64, 'float16', 8),
])  # fmt: skip
def test_narrow_heads_of_half_precision_have_four_warps(
    head_dim: int, dtype: str, expected: int
) -> None:
    """Eight gave an H200 wrong gradients."""
    case = Trial('', 2, 50, 50, 4, 4, head_dim, dtype=dtype, key_bias=True)
    assert warps(backward(make_inputs(case)))['d_kv_kernel'] == expected


def lowered(length: int) -> str:
    """The program of forward and backward for an H100, kernels as Triton modules."""
    shape = jax.ShapeDtypeStruct((1, length, 4, 64), 'bfloat16')
    kv_shape = jax.ShapeDtypeStruct((1, length, 2, 64), 'bfloat16')

    def loss(q, k, v, table_PN):
        mask = Mask(window=length // 4)
        result = flash_attention(
            PallasGpu(), q, k, v, mask=mask, bias=Buckets(table_PN), entropy=True
        )
        return jnp.sum(result.out).astype(jnp.float32) + jnp.sum(result.entropy + result.lse)

    function = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))
    traced = (shape, kv_shape, kv_shape, jax.ShapeDtypeStruct((32, 4), 'float32'))
    with on_device('NVIDIA H100', 'gpu'):
        return function.trace(*traced).lower(lowering_platforms=('cuda',)).as_text()


def test_lowers_for_a_gpu_without_arrays_as_large_as_the_scores() -> None:
    program = lowered(2048)
    assert program.count('triton') >= 4  # forward, d_q, d_kv, d_line
    assert '2048x2048' not in program
