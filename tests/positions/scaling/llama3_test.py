from __future__ import annotations

import numpy as np
import pytest

from nope.positions import Llama3
from tests import vectors


@pytest.mark.parametrize('expected', vectors.whole('llama3_f4_lf1_hf4_old2048_base1e4_d64'))
def test_a_ramp_over_wavelengths(expected: list[float]) -> None:
    scaling = Llama3(factor=4.0, train_length=2048, low=1.0, high=4.0)
    found = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found, expected, rtol=vectors.RTOL)


def test_short_waves_stay_and_long_ones_are_interpolated_exactly() -> None:
    """With the numbers of Llama 3.1: shorter than 2048 tokens, and longer than 8192."""
    found = np.asarray(Llama3(8.0, 8192).inverse_frequencies(500_000.0, 128, 1))
    exact = 500_000.0 ** (-np.arange(0, 128, 2) / 128)
    waves = 2 * np.pi / exact
    short, long = waves < 2048, waves > 8192
    np.testing.assert_array_equal(found[short], np.float32(exact[short]))
    np.testing.assert_array_equal(found[long], np.float32(exact[long] / 8))
    between = ~(short | long)
    assert between.sum() > 5
    assert np.all((found[between] < exact[between]) & (found[between] > exact[between] / 8))
