"""Other people's attention, asked for ours."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import attention, library
from nope.attention.backend import Call
from nope.attention.cases import Trial, make_inputs
from tests.attention.cases import TEST_CASES
from tests.attention.contract import (
    COVERING,
    TOLERANCE,
    assert_agrees,
    assert_close,
    expected,
    slow_but,
)

PLAIN = Call(
    'gpu', 'NVIDIA H200', 2, 256, 256, 8, 2, 64, 'bfloat16', True, None, False, False, None, False
)


def supported(case: Trial) -> bool:
    plain = case.segments == 'none' and case.bias == 'none' and case.offset is None
    return plain and (case.window is None or case.causal)


@pytest.mark.parametrize(
    'case', [case for case in slow_but(COVERING, TEST_CASES) if supported(case.values[0])]
)
def test_on_a_cpu_it_agrees_with_the_definition(case: Trial) -> None:
    """The entropy by way of keys as values: within rounding where logits are of order one."""
    assert_agrees('library', case, slack=2.0)


@pytest.mark.parametrize('case', [
    Trial('causal', 2, 256, 256, 4, 2, 64),
    Trial('window', 1, 384, 384, 2, 2, 64, window=100),
    Trial('full', 1, 128, 256, 4, 1, 128, causal=False),
], ids=lambda case: case.name)  # fmt: skip
def test_splash_attention_in_interpret_mode(case: Trial) -> None:
    inputs = make_inputs(case)
    attend = functools.partial(library.splash_attention, mask=inputs.mask, interpret=True)

    def pulled(q, k, v):
        out = attend(q, k, v)
        return jnp.sum(out * inputs.d_out_BTNH), out

    gradient = jax.jit(jax.grad(pulled, (0, 1, 2), has_aux=True))
    gradients, out = gradient(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH)
    right, right_gradients = expected(case, ('out',))
    assert_close(out, right.out, TOLERANCE['float32'])
    for array, wanted in zip(gradients, right_gradients, strict=True):
        assert_close(array, wanted, 2 * TOLERANCE['float32'])


def test_a_log_sum_exp_that_nobody_uses_is_not_computed() -> None:
    inputs = make_inputs(Trial('', 1, 1000, 1000, 8, 8, 8))

    def loops(output: str) -> int:
        def run(q):
            result = attention(q, inputs.k_BSKH, inputs.v_BSKH, implementation='library')
            return getattr(result, output)

        return jax.jit(run).lower(inputs.q_BTNH).compile().as_text().count('while(')

    assert loops('out') == 0
    assert loops('lse') > 0


@pytest.mark.parametrize(('changes', 'reason'), [
    ({}, 'this process has none'),
    ({'platform': 'tpu', 'dtype': 'float32'}, None),
    ({'bias': 'AlibiBias'}, 'dense array'),
    ({'segmented': True}, 'dense mask'),
    ({'offset': True}, 'position 0'),
    ({'window': 8, 'causal': False}, 'windows are causal'),
    ({'entropy': True}, 'float32 products'),
    ({'dtype': 'float32'}, 'float32 attention'),
    ({'head_dim': 264}, 'head dim 264'),
    ({'platform': 'tpu', 'queries': 200}, 'T=200 and S=256'),
    ({'platform': 'rocm'}, 'none for rocm'),
])  # fmt: skip
def test_it_says_what_it_cannot_do(changes: dict, reason: str | None) -> None:
    found = library._unsupported(dataclasses.replace(PLAIN, **changes))
    assert (found is None) if reason is None else reason in (found or '')


def test_an_entropy_by_keys_as_values_loses_what_large_logits_round() -> None:
    """Which is why it is offered where products are float32, and chosen nowhere."""
    inputs = make_inputs(Trial('', 1, 150, 150, 4, 4, 16))
    q_BTNH = inputs.q_BTNH.at[..., 0].set(300.0)
    k_BSKH = inputs.k_BSKH.at[..., 0].set(1.0)
    found, right = (
        attention(q_BTNH, k_BSKH, inputs.v_BSKH, entropy=True, implementation=name).entropy
        for name in ('library', 'reference')
    )
    assert 0 < np.max(np.abs(np.asarray(found) - np.asarray(right))) < 1e-3
