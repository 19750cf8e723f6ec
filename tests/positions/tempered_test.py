from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import TemperedNoPE
from tests.positions import cases

T = 40


@pytest.mark.parametrize(('rate', 'span'), [(0.1, 8), (0.1, 1), (0.5, 7), (0.1, 41)])
def test_queries_grow_by_the_number_of_spans_before_them(rate: float, span: int) -> None:
    position = TemperedNoPE(rate, span)
    q_BTNH, k_BTKH = cases.normal(0, 1, T, 2, 4), cases.normal(1, 1, T, 1, 4)
    q_out, k_out = cases.encode(position, q_BTNH, k_BTKH, np.arange(T, dtype=np.int32)[None], T)
    factor = [1 + rate * math.log(math.floor((i + 1) / span) + 1) for i in range(T)]
    np.testing.assert_allclose(q_out, q_BTNH * np.array(factor)[:, None, None], rtol=1e-6)
    np.testing.assert_array_equal(q_out[:, : span - 1], q_BTNH[:, : span - 1])
    np.testing.assert_array_equal(k_out, k_BTKH)


@pytest.mark.parametrize('spans', [1, 2, 100])
def test_the_factor_steps_at_whole_spans_of_8192(spans: int) -> None:
    around = jnp.asarray([[8192 * spans - 2, 8192 * spans - 1]], jnp.int32)
    before, after = (1 + 0.1 * math.log(n) for n in (spans, spans + 1))
    np.testing.assert_allclose(TemperedNoPE().multipliers(around), [[before, after]], rtol=1e-6)


def test_half_precision_is_multiplied_in_float32() -> None:
    q_BTNH = jnp.asarray(cases.normal(0, 1, T, 2, 4), jnp.bfloat16)
    positions_BT = np.arange(T, dtype=np.int32)[None]
    found, _ = cases.encode(TemperedNoPE(span=8), q_BTNH, q_BTNH, positions_BT, T)
    in_float32 = q_BTNH.astype(jnp.float32)
    exact, _ = cases.encode(TemperedNoPE(span=8), in_float32, in_float32, positions_BT, T)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))


@pytest.mark.parametrize('span', [0, 2**30 + 1, 2**31])
def test_a_span_that_int32_positions_cannot_be_divided_by_is_refused(span: int) -> None:
    with pytest.raises(ValueError, match=rf'^span is {span}; accepted: 1 to 2\*\*30'):
        TemperedNoPE(span=span)


def test_the_longest_span_is_used() -> None:
    positions_BT = np.array([[0, 2**30 - 1, 2**31 - 2]], np.int32)
    expected = [[1, 1 + 0.1 * math.log(2), 1 + 0.1 * math.log(2)]]
    np.testing.assert_allclose(
        TemperedNoPE(span=2**30).multipliers(jnp.asarray(positions_BT)), expected, rtol=1e-6
    )
