from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.bias import as_array
from nope.positions import Alibi
from tests import vectors


def mpt_slopes(heads: int) -> np.ndarray:
    """MPT's: of the list for the next power of two, the even entries and then the odd ones
    (counted from 1)."""
    power = 1 << (heads - 1).bit_length()
    slopes = 1 / 2 ** (8 * np.arange(1, power + 1) / power)
    return slopes if power == heads else np.concatenate([slopes[1::2], slopes[::2]])[:heads]


@pytest.mark.parametrize(('heads', 'expected'), vectors.entries('alibi_slopes'))
def test_slopes(heads: str, expected: list[float]) -> None:
    np.testing.assert_allclose(Alibi().slopes(int(heads)), expected, rtol=1e-9)
    bias = Alibi().bias(int(heads), None)
    assert bias.slopes_N.dtype == jnp.float32
    np.testing.assert_allclose(bias.slopes_N, expected, rtol=vectors.RTOL)


@pytest.mark.parametrize('heads', range(1, 65))
def test_any_number_of_heads(heads: int) -> None:
    """Powers of one ratio inside each of the two lists, the same numbers as MPT's."""
    slopes = Alibi().slopes(heads)
    assert slopes.shape == (heads,) and slopes.dtype == np.float64
    power = 2 ** (heads.bit_length() - 1)
    for part, ratio in ((slopes[:power], 2 ** (-8 / power)), (slopes[power:], 2 ** (-8 / power))):
        np.testing.assert_allclose(part[1:], part[:-1] * ratio, rtol=1e-12)
    np.testing.assert_allclose(slopes, mpt_slopes(heads), rtol=1e-12)
    assert np.all(slopes < 1) and np.unique(slopes).size == heads


def test_the_exponent_is_that_of_the_last_head() -> None:
    np.testing.assert_allclose(Alibi(4.0).slopes(8), 2.0 ** (-np.arange(1, 9) / 2), rtol=1e-12)


def test_harmonic_slopes_are_those_of_nape() -> None:
    np.testing.assert_allclose(Alibi(harmonic=True).slopes(4), [1, 1 / 2, 1 / 3, 1 / 4])
    with pytest.raises(ValueError, match=r'max_exponent is 4\.0; harmonic slopes are 1 / h'):
        Alibi(4.0, harmonic=True)


def test_the_bias_is_minus_slope_times_distance() -> None:
    """Up to a number for each query it is BLOOM's, slope times the key's index."""
    T, slopes_N = 7, Alibi().slopes(6)
    bias_NTS = np.asarray(as_array(Alibi().bias(6, None), T, T, None))
    t, s = np.tril_indices(T)
    expected = -slopes_N[:, None] * (t - s)
    np.testing.assert_allclose(bias_NTS[:, t, s], expected, rtol=1e-6)
    by_key_NTS = slopes_N[:, None, None] * np.arange(T)
    np.testing.assert_allclose(
        (bias_NTS - by_key_NTS)[:, t, s], -slopes_N[:, None] * t, rtol=1e-5, atol=1e-6
    )
