"""The kernels on the accelerator of this machine, against the definition in float64 on its CPU.

    JAX_PLATFORMS=cuda,cpu python -m pytest -m device tests/attention/device_test.py    # or tpu,cpu

The platform has to be named: tests run on the CPU otherwise. On a GPU set
XLA_PYTHON_CLIENT_PREALLOCATE=false where several processes share it.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import attention
from nope.attention.api import BACKENDS, PREFERRED
from nope.attention.backend import describe
from nope.attention.cases import Inputs, Trial, make_inputs
from tests.attention.cases import FACTOR_CASES, KEY_BIAS_CASES, TEST_CASES
from tests.attention.contract import OUTPUTS, assert_agrees, expected

# NOPE_DEVICE_TESTS=cpu tries the tests themselves where there is no accelerator.
TRIED = os.environ.get('NOPE_DEVICE_TESTS')
IMPLEMENTATIONS = PREFERRED[jax.default_backend()]
REPEATS = 50

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(
        jax.default_backend() == 'cpu' and TRIED != 'cpu',
        reason='JAX has no accelerator here; JAX_PLATFORMS=cuda,cpu or tpu,cpu names one',
    ),
]


def half(case: Trial, head_dim: int) -> Trial:
    """The case as the matrix units take it."""
    dtype = 'float16' if case.dtype == 'float16' else 'bfloat16'
    return dataclasses.replace(case, name=f'{case.name}_{head_dim}', head_dim=head_dim, dtype=dtype)


CASES = (
    *TEST_CASES,
    *KEY_BIAS_CASES,
    *FACTOR_CASES,
    *(half(case, 64) for case in (*TEST_CASES, *KEY_BIAS_CASES, *FACTOR_CASES)),
    *(half(case, 128) for case in (*TEST_CASES, *KEY_BIAS_CASES)),
    Trial('head_dim_80', 1, 300, 300, 4, 2, 80, dtype='bfloat16'),
    Trial('head_dim_256', 1, 300, 300, 4, 2, 256, dtype='bfloat16'),
    Trial('narrow', 2, 40, 40, 4, 4, 16, dtype='bfloat16', key_bias=True),
    Trial('blocks_of_128', 2, 256, 256, 4, 2, 64, dtype='bfloat16'),
    # As a device of a ring sees the keys of another one: none of them, some, all.
    Trial('ring_before', 1, 256, 256, 4, 2, 64, offset=-300, dtype='bfloat16'),
    Trial('ring_partly', 1, 256, 256, 4, 2, 64, offset=-100, dtype='bfloat16'),
    Trial('ring_after', 1, 256, 256, 4, 2, 64, offset=256, dtype='bfloat16'),
    Trial(
        'ring_biased', 1, 256, 256, 4, 2, 64, True, 'none', 'bfloat16', None, -100, 'alibi', True
    ),
    # More blocks than a kernel has buffers.
    Trial('many_blocks', 1, 1500, 1500, 8, 1, 128, dtype='bfloat16'),
    Trial('many_blocks_full', 1, 140, 1900, 8, 8, 64, False, dtype='bfloat16'),
    Trial('many_blocks_packed', 2, 1024, 1024, 4, 2, 64, segments='packed', dtype='bfloat16'),
    Trial('many_blocks_window', 1, 2048, 2048, 4, 2, 64, window=300, dtype='bfloat16'),
    Trial('many_biased', 1, 1500, 1500, 8, 1, 128, dtype='bfloat16', bias='alibi', key_bias=True),
)


def outputs_of(implementation: str) -> tuple[str, ...]:
    """What is compared: vendor libraries have an output and nothing else of their own."""
    return ('out',) if implementation == 'library' else OUTPUTS


def check_supported(implementation: str, inputs: Inputs) -> None:
    call = describe(
        inputs.q_BTNH, inputs.k_BSKH, inputs.mask, inputs.bias,
        entropy='entropy' in outputs_of(implementation),
        key_bias=inputs.key_bias_BNS is not None,
    )  # fmt: skip
    reason = BACKENDS[implementation].unsupported(call)
    if reason is not None:
        pytest.skip(f'{implementation} cannot: {reason}')


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)
@pytest.mark.parametrize('implementation', IMPLEMENTATIONS)
def test_agrees_with_the_definition(implementation: str, case: Trial) -> None:
    """To 1e-5 where lse and entropy are float32 sums, with the device's own logarithm and
    exponential; gradients in float32 to 1e-4."""
    check_supported(implementation, make_inputs(case))
    with jax.default_device(jax.local_devices(backend='cpu')[0]):
        expected(case, outputs_of(implementation))  # kept: a device may lack float64
    assert_agrees(implementation, case, outputs_of(implementation), slack=5.0, gradient_slack=50.0)


@pytest.mark.parametrize('case', [
    half(Trial('plain', 2, 640, 640, 8, 2, 0), 64), half(Trial('plain', 2, 640, 640, 8, 2, 0), 128),
    half(Trial('packed', 2, 640, 640, 8, 2, 0, segments='packed'), 64),
    half(Trial('window', 2, 640, 640, 8, 2, 0, window=200), 64),
    half(Trial('biased', 2, 640, 640, 8, 2, 0, bias='alibi', key_bias=True), 64),
], ids=lambda case: case.name)  # fmt: skip
@pytest.mark.parametrize('implementation', IMPLEMENTATIONS)
def test_repeats_bitwise_in_memory_full_of_nan(implementation: str, case: Trial) -> None:
    """A copy that is not waited for, and a race between two writers, differ between runs. cuDNN's
    gradients need not repeat: of `library` the output is compared."""
    inputs = make_inputs(case)
    check_supported(implementation, inputs)

    def run(inputs: Inputs) -> Any:
        def attend(q, k, v, key_bias, bias):
            result = attention(
                q, k, v, mask=inputs.mask, bias=bias, key_bias_BNS=key_bias,
                implementation=implementation, entropy='entropy' in outputs_of(implementation),
            )  # fmt: skip
            return [getattr(result, name) for name in outputs_of(implementation)]

        arrays = inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, inputs.key_bias_BNS, inputs.bias
        if implementation == 'library':
            return attend(*arrays)
        found, back = jax.vjp(attend, *arrays)
        weights = inputs.d_out_BTNH, inputs.d_lse_BNT, inputs.d_entropy_BNT
        return found, back([x.astype(y.dtype) for x, y in zip(weights, found, strict=True)])

    program = jax.jit(run).lower(inputs).compile()
    poison()
    first = jax.tree.map(np.asarray, program(inputs))
    assert all(np.all(np.isfinite(x.astype(np.float32))) for x in jax.tree.leaves(first))
    for repeat in range(REPEATS):
        if repeat % 10 == 0:  # between these, calls get the memory of earlier ones
            poison()
        jax.tree.map(
            np.testing.assert_array_equal, jax.tree.map(np.asarray, program(inputs)), first
        )


def poison() -> None:
    """Fills 8 GiB of the accelerator with NaN and gives them back: what is read before it is
    written is NaN."""
    if jax.default_backend() != 'cpu':
        jax.block_until_ready([jnp.full(2**28, jnp.nan, jnp.float32) for _ in range(8)])
