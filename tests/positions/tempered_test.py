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


def test_a_span_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r'^span is 0; it must be at least 1'):
        TemperedNoPE(span=0)
