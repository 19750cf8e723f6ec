"""The TPU kernels, interpreted."""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
import pytest
from jax.experimental.pallas import tpu as pltpu

from nope.attention import attention
from nope.attention.backend import Call
from nope.attention.cases import Trial, make_inputs
from nope.attention.flash import flash_attention
from nope.attention.pallas_tpu import BACKEND, PallasTpu, kernel, sizes
from nope.attention.pallas_tpu.sizes import TpuBlocks, part_of
from tests.attention.contract import TOLERANCE, AttentionContract, assert_close, value_and_gradients
from tests.attention.devices import on_device
from tests.attention.factor_contract import FactorContract
from tests.attention.key_bias_contract import KeyBiasContract
from tests.interpreted import PALLAS_TPU

pytestmark = pytest.mark.usefixtures('interpreted_kernels')


class TestKeyBias(KeyBiasContract):
    implementation = 'pallas_tpu_interpret'


class TestFactors(FactorContract):
    implementation = 'pallas_tpu_interpret'


class TestPallasTpu(AttentionContract):
    implementation = 'pallas_tpu_interpret'


@pytest.mark.parametrize(
    'bias', ['buckets', pytest.param('scale_invariant', marks=pytest.mark.slow)]
)
def test_on_a_simulated_tpu(bias: str) -> None:
    """With the blocks of a TPU and its memories, where what was never written is NaN and copies
    that race are an error."""
    case = Trial('', 1, 260, 300, 2, 1, 64, True, 'packed', 'float32', 100, 40, bias)
    inputs = make_inputs(dataclasses.replace(case, key_bias=True))
    wanted = value_and_gradients(functools.partial(attention, implementation='reference'), inputs)
    simulated = pltpu.InterpretParams(uninitialized_memory='nan', detect_races=True)
    with pltpu.force_tpu_interpret_mode(simulated):
        found = value_and_gradients(functools.partial(flash_attention, PallasTpu()), inputs)
    for array, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert_close(array, right, TOLERANCE['float32'])


@pytest.mark.parametrize('bias', ['none', pytest.param('scale_invariant', marks=pytest.mark.slow)])
def test_parts_of_a_block_are_computed_as_the_whole(bias: str) -> None:
    case = Trial('', 1, 80, 80, 4, 2, 8, segments='packed', window=50, bias=bias)
    inputs = make_inputs(dataclasses.replace(case, key_bias=bias == 'none'))
    found = []
    for part in (16, 64):
        blocks = TpuBlocks(64, 64, part)
        kernel = PallasTpu(True, (('forward', blocks), ('backward', blocks)))
        result = value_and_gradients(functools.partial(flash_attention, kernel), inputs)
        found.append(jax.tree.leaves(result))
    for of_parts, of_whole in zip(*found, strict=True):
        assert_close(of_parts, of_whole, 1e-6)


@pytest.mark.parametrize(
    'changes',
    [
        pytest.param({'key_bias': True, 'segments': 'packed'}, marks=pytest.mark.slow),
        {'bias': 'scale_invariant', 'queries': 30, 'offset': 50},
        pytest.param({'window': 20, 'causal': False}, marks=pytest.mark.slow),
    ],
)
def test_one_kernel_has_the_gradients_of_two(
    changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = make_inputs(dataclasses.replace(Trial('', 2, 80, 80, 4, 2, 8), **changes))
    function = PALLAS_TPU.attend
    found = []
    for kept in (sizes.KEPT_BYTES, 0):
        monkeypatch.setattr(sizes, 'KEPT_BYTES', kept)
        gradients = jax.tree.leaves(value_and_gradients(function, inputs))
        found.append([np.asarray(x) for x in gradients])
    for of_one, of_two in zip(*found, strict=True):
        assert_close(of_one, of_two, 1e-6)


@pytest.mark.parametrize(('kind', 'keys', 'head_dim', 'itemsize', 'one'), [
    ('TPU v5 lite', 16384, 128, 2, True),
    ('TPU v5 lite', 16385, 128, 2, False),
    ('TPU v5p', 16384, 64, 2, True),
    ('TPU v6 lite', 16385, 64, 2, False),  # the lanes of 128
    ('TPU v6 lite', 8192, 256, 2, True),
    ('TPU v6 lite', 16384, 128, 4, False),
    ('TPU v4', 1024, 128, 2, False),
])  # fmt: skip
def test_one_kernel_goes_backward_where_its_sums_fit(
    kind: str, keys: int, head_dim: int, itemsize: int, one: bool
) -> None:
    with on_device(kind, 'tpu'):
        assert sizes.kept_fit(keys, head_dim, itemsize) == one


@pytest.mark.parametrize(('rows', 'largest', 'part'), [
    (1024, 256, 256), (512, 1024, 512), (128, 64, 128),
    (768, 256, 384),  # whose half is one and a half registers
    (640, 256, 640),
])  # fmt: skip
def test_parts_divide_a_block_and_fill_registers(rows: int, largest: int, part: int) -> None:
    assert part_of(rows, largest, 128) == part


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({}, None),
        ({'queries': 2**18, 'keys': 2**18}, None),
        ({'queries': 2**20, 'keys': 2**20}, 'does not fit into scalar memory'),
        ({'queries': 2**20, 'keys': 2**20, 'window': 4096}, None),
        ({'queries': 2**18, 'keys': 2**18, 'dtype': 'float32'}, 'do not fit into vector memory'),
        ({'queries': 1, 'keys': 2**20, 'offset': True}, None),
        ({'head_dim': 512}, 'the head dim is 512'),
        ({'platform': 'gpu'}, 'the device is a gpu'),
    ],
)
def test_says_what_it_cannot_do(changes: dict, reason: str | None) -> None:
    usual = Call(
        'tpu', 'TPU v5 lite', 1, 2048, 2048, 32, 4, 64, 'bfloat16', True, None, False, False, None,
        True,
    )  # fmt: skip
    found = BACKEND.unsupported(dataclasses.replace(usual, **changes))
    assert (found is None) if reason is None else reason in (found or '')


@pytest.mark.parametrize(('changes', 'side'), [
    ({}, 1024), ({'H': 64, 'window': 5000}, 1024),
    ({'T': 2048, 'S': 2048}, 512),  # half of most pairs would be hidden
    ({'T': 5200, 'S': 5200}, 512),  # six blocks would be a seventh longer
    ({'T': 1}, 512),
    ({'window': 1000}, 512),
    ({'plain': False}, 512),
    ({'H': 256}, 256),
    ({'plain': False, 'T': 2**18, 'S': 2**18}, 1024),  # a table of steps of 512 would not fit
])  # fmt: skip
def test_blocks_that_nobody_measured(changes: dict, side: int) -> None:
    call = dict(T=8192, S=8192, H=128, causal=True, window=None, aligned=True, plain=True)
    plan = kernel._square(**(call | changes))
    assert (plan.q_block, plan.k_block) == (side, side)
