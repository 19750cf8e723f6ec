"""The Hopper kernels in JAX's interpreter against the definition, and what they refuse."""

from __future__ import annotations

import dataclasses
import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import AlibiBias
from nope.attention.backend import Call
from nope.attention.cases import Trial, make_inputs
from nope.attention.flash import flash_attention
from nope.attention.mosaic_gpu import BACKEND, MosaicGpu
from nope.attention.mosaic_gpu.kernel import _missing
from nope.attention.reference import reference_attention
from nope.attention.structure import AttentionOutput, Mask
from tests.attention.cases import KEY_BIAS_CASES, TEST_CASES
from tests.attention.contract import OUTPUTS, TOLERANCE, assert_close, expected, value_and_gradients
from tests.interpreted import MOSAIC_GPU

KERNEL = MOSAIC_GPU.attend
CALL = Call(
    'gpu', 'NVIDIA H200', 8, 2048, 2048, 32, 4, 64, 'bfloat16', True, None, False, False, None, True
)
interpreted = pytest.mark.usefixtures('interpreter')


@pytest.fixture
def interpreter() -> None:
    reason = MOSAIC_GPU.unsupported(CALL)
    if reason is not None:
        pytest.skip(f'{MOSAIC_GPU.name} cannot: {reason}')


def small(case: Trial, **changes) -> Trial:
    """Fewer heads: the interpreter takes its time for each. Two share keys where any do."""
    few = {'heads': 2, 'kv_heads': 1 if case.kv_heads < case.heads else 2}
    return dataclasses.replace(case, **({'dtype': 'bfloat16', 'head_dim': 64} | few | changes))


def named(name: str, **changes) -> Trial:
    return small(
        next(case for case in (*TEST_CASES, *KEY_BIAS_CASES) if case.name == name), **changes
    )


def assert_agrees(case: Trial, outputs: tuple[str, ...] = OUTPUTS) -> None:
    """Values and gradients are those of the definition, computed in float64."""
    result, gradients = value_and_gradients(KERNEL, make_inputs(case), outputs)
    right, right_gradients = expected(case, outputs)
    for name, array, wanted in zip(AttentionOutput._fields, result, right, strict=True):
        if wanted is None:
            assert array is None
            continue
        assert array.dtype == (case.dtype if name == 'out' else 'float32')
        assert_close(array, wanted, TOLERANCE[case.dtype if name == 'out' else 'float32'])
    for index, (array, wanted) in enumerate(zip(gradients, right_gradients, strict=True)):
        assert array.dtype == (case.dtype if index < 3 else 'float32')
        assert np.all(np.isfinite(array.astype(np.float32)))
        assert_close(array, wanted, TOLERANCE[case.dtype])


# Between them: one block and several, ragged ends, grouped heads, every rule and both in a block.
# The slow ones are of rules that a GPU has had (`device_test.py`, bfloat16, head dims 64, 128).
@interpreted
@pytest.mark.parametrize(
    'case',
    [
        pytest.param(named('tiny', head_dim=8), marks=pytest.mark.slow),
        pytest.param(named('grouped', head_dim=128, batch=1), marks=pytest.mark.slow),
        pytest.param(named('full_empty_rows'), marks=pytest.mark.slow),
        pytest.param(named('cached', batch=1), marks=pytest.mark.slow),
        pytest.param(named('window', batch=1), marks=pytest.mark.slow),
        pytest.param(named('window_full', batch=1, dtype='float16'), marks=pytest.mark.slow),
        Trial('every_rule', 1, 90, 260, 2, 1, 64, True, 'packed', 'bfloat16', 100, 150),
        pytest.param(named('key_bias_grouped', batch=1), marks=pytest.mark.slow),
        pytest.param(named('key_bias_empty_rows', head_dim=128), marks=pytest.mark.slow),
        pytest.param(named('key_bias_full', dtype='float16'), marks=pytest.mark.slow),
        pytest.param(named('key_bias_cached', batch=1, head_dim=128), marks=pytest.mark.slow),
        pytest.param(named('alibi', batch=1), marks=pytest.mark.slow),
        pytest.param(named('alibi_cached', head_dim=128), marks=pytest.mark.slow),
        # As a device of a ring sees the keys of another one.
        Trial('ring', 1, 150, 150, 2, 1, 128, True, 'none', 'bfloat16', None, -70, 'alibi', True),
        named('key_bias_every_rule', batch=1, bias='alibi'),
    ],
    ids=lambda case: case.name,
)
def test_agrees_with_the_definition(case: Trial) -> None:
    assert_agrees(case)


@interpreted
@pytest.mark.parametrize(
    'wanted', [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_programs_share_a_group_or_run_through_all_of_it(
    wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four query heads: of one program, two each of two, one each of four."""
    key_gradients = importlib.import_module('nope.attention.mosaic_gpu.key_gradients')
    monkeypatch.setattr(key_gradients, 'ENOUGH_PROGRAMS', wanted)
    assert_agrees(Trial('', 1, 100, 100, 4, 1, 64, dtype='bfloat16', bias='alibi', key_bias=True))


@interpreted
def test_without_the_entropy() -> None:
    assert_agrees(named('ragged', batch=1), ('out', 'lse'))


@interpreted
@pytest.mark.parametrize(
    'name', [pytest.param('alibi_cached', marks=pytest.mark.slow), 'full_empty_rows']
)
def test_largest_logits_are_those_of_the_definition(name: str) -> None:
    inputs = make_inputs(named(name, batch=1))
    arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH
    how = {'mask': inputs.mask, 'bias': inputs.bias, 'entropy': name == 'alibi_cached'}
    found, right = (
        attend(*arrays, **how, max_logit=True) for attend in (KERNEL, reference_attention)
    )
    assert_close(found.max_logit, right.max_logit, TOLERANCE['float32'])
    assert_close(found.lse, right.lse, TOLERANCE['float32'])


@interpreted
@pytest.mark.parametrize('keys', [pytest.param(128, marks=pytest.mark.slow), 256])
def test_whole_blocks_alone(keys: int) -> None:
    """No rule hides a pair and nothing is padded, in one block and in two."""
    assert_agrees(Trial('', 1, 128, keys, 1, 1, 64, False, dtype='bfloat16'))


@interpreted
def test_more_blocks_than_buffers() -> None:
    """Every buffer is filled again after it has been read."""
    assert_agrees(Trial('', 1, 140, 700, 1, 1, 64, False, dtype='bfloat16'))


@interpreted
@pytest.mark.parametrize('slope', [35.0, pytest.param(-35.0, marks=pytest.mark.slow)])
def test_a_key_bias_of_thousands(slope: float) -> None:
    """As the logarithms of gates sum up to: a row's keys in one block are thousands above or below
    those of another, and rows beyond the end have no part in a gradient."""
    case = Trial('', 1, 150, 150, 1, 1, 64, segments='packed', dtype='bfloat16', key_bias=True)
    inputs = make_inputs(case)
    steep_BNS = inputs.key_bias_BNS + jnp.arange(150.0) * slope
    steep = dataclasses.replace(inputs, key_bias_BNS=steep_BNS)
    (right, right_gradients), (found, gradients) = (
        value_and_gradients(function, steep) for function in (reference_attention, KERNEL)
    )
    assert np.max(np.abs(right.lse)) > 2000
    assert_close(found.lse, right.lse, 1e-6)
    # A logit of 5,000 carries a rounding error of 2e-4.
    assert_close(found.entropy, right.entropy, 2e-3)
    pairs = zip((found.out, *gradients), (right.out, *right_gradients), strict=True)
    for array, wanted in pairs:
        assert_close(array, wanted, TOLERANCE['bfloat16'])


@interpreted
def test_alibi_far_from_the_first_key_is_alibi_near_it() -> None:
    """A slope times the index of a key would be rounded by 0.004 there."""
    near = make_inputs(Trial('', 1, 40, 240, 1, 1, 64, offset=200, window=90, dtype='bfloat16'))
    bias, far = AlibiBias(jnp.asarray([0.7])), 131_000

    @functools.partial(jax.jit, static_argnames='before')
    def run(before: int) -> AttentionOutput:
        k, v = (
            jnp.pad(x, ((0, 0), (before, 0), (0, 0), (0, 0))) for x in (near.k_BSKH, near.v_BSKH)
        )
        mask = Mask(True, window=90, offset=200 + before)
        return KERNEL(near.q_BTNH, k, v, mask=mask, bias=bias, entropy=True)

    found, wanted = run(far), run(0)
    assert_close(found.out, wanted.out, TOLERANCE['bfloat16'])
    assert_close(found.lse, wanted.lse, TOLERANCE['float32'])
    assert_close(found.entropy, wanted.entropy, TOLERANCE['float32'])


def test_a_key_bias_that_is_not_differentiated_has_no_gradient_in_the_program() -> None:
    if _missing() is not None:
        pytest.skip(f'mosaic_gpu cannot: {_missing()}')
    inputs = make_inputs(Trial('', 1, 150, 150, 4, 2, 64, dtype='bfloat16', bias='alibi',
                              key_bias=True))  # fmt: skip

    def sums(*of: str) -> int:
        """Of a block's numbers, in the traced program of the gradients of these."""

        def pulled(arrays: dict) -> jax.Array:
            x = dataclasses.replace(inputs, **arrays)
            result = flash_attention(
                MosaicGpu(), x.q_BTNH, x.k_BSKH, x.v_BSKH, mask=x.mask, bias=x.bias,
                key_bias_BNS=x.key_bias_BNS, entropy=True,
            )  # fmt: skip
            return jnp.sum(result.lse) + jnp.sum(result.entropy)

        program = jax.make_jaxpr(jax.grad(pulled))({name: getattr(inputs, name) for name in of})
        return str(program).count('reduce_sum')

    assert sums('q_BTNH', 'k_BSKH') < sums('q_BTNH', 'k_BSKH', 'key_bias_BNS')


@interpreted
def test_one_program_for_every_offset() -> None:
    inputs = make_inputs(Trial('', 1, 150, 150, 2, 1, 64, window=90, dtype='bfloat16'))
    q, k, v = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH

    @jax.jit
    def run(q, offset):
        return KERNEL(q, k, v, mask=Mask(True, window=90, offset=offset), bias=None, entropy=True)

    whole = KERNEL(q, k, v, mask=inputs.mask, bias=None, entropy=True)
    for first in (0, 63, 147):
        part, rows = run(q[:, first : first + 3], jnp.int32(first)), slice(first, first + 3)
        assert_close(part.out, whole.out[:, rows], TOLERANCE['bfloat16'])
        assert_close(part.lse, whole.lse[..., rows], TOLERANCE['float32'])
        assert_close(part.entropy, whole.entropy[..., rows], TOLERANCE['float32'])
    assert run._cache_size() == 1


@interpreted
def test_entropy_stays_exact_where_logits_are_large() -> None:
    inputs = make_inputs(Trial('', 1, 130, 130, 1, 1, 64, dtype='bfloat16'))
    q = inputs.q_BTNH.at[..., 0].set(256)
    k = inputs.k_BSKH.at[..., 0].set(1)

    @jax.jit
    def run(q):
        return KERNEL(q, k, inputs.v_BSKH, mask=inputs.mask, bias=None, entropy=True)

    moved, plain = run(q), run(q.at[..., 0].set(0))
    assert_close(moved.lse, plain.lse + 256, 1e-6)
    assert_close(moved.entropy, plain.entropy, 1e-4)


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'device_kind': 'NVIDIA A100-SXM4-80GB'}, 'not a Hopper GPU'),
        ({'device_kind': 'NVIDIA B200'}, 'not a Hopper GPU'),
        ({'platform': 'cpu', 'device_kind': 'cpu'}, 'the device is cpu'),
        ({'dtype': 'float32'}, 'the inputs are float32'),
        ({'head_dim': 256}, 'up to 128'),
        ({'bias': 'KerpleBias'}, 'this call has KerpleBias'),
        ({'bias': 'AlibiBias', 'causal': False}, 'where no query sees later keys'),
    ],
)
def test_says_what_it_cannot_do(change: dict, reason: str) -> None:
    assert reason in (BACKEND.unsupported(dataclasses.replace(CALL, **change)) or '')


def test_refuses_a_jax_that_waits_for_all_products_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    language = pytest.importorskip('jax.experimental.pallas.mosaic_gpu')
    monkeypatch.delattr(language, 'wgmma_accumulator_load', raising=False)
    _missing.cache_clear()
    assert 'waits for all products at once' in (BACKEND.unsupported(CALL) or '')
    _missing.cache_clear()
