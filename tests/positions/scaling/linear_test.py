from __future__ import annotations

import numpy as np
import pytest

from nope.positions import Linear, RoPE
from tests import vectors
from tests.positions import cases


@pytest.mark.parametrize(('factor', 'expected'), vectors.entries('pi'))
def test_every_frequency_is_divided(factor: str, expected: list[float]) -> None:
    found = Linear(float(factor)).inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found, expected, rtol=vectors.RTOL)


@pytest.mark.parametrize('factor', [2, 3])
def test_position_n_turns_as_n_over_the_factor_did(factor: int) -> None:
    T = 12
    x_BTNH = cases.normal(0, 1, T, 2, 8)
    apart, together = (np.arange(0, step * T, step, dtype=np.int32)[None] for step in (factor, 1))
    scaled, _ = cases.encode(RoPE(scaling=Linear(factor)), x_BTNH, x_BTNH, apart, factor * T)
    plain, _ = cases.encode(RoPE(), x_BTNH, x_BTNH, together, T)
    np.testing.assert_allclose(scaled, plain, rtol=1e-5, atol=1e-6)
