from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.bias import as_array, factors_as_array
from nope.positions import RoPE, ScaleInvariant
from tests.positions import cases

T, H = 32, 8
POSITIONS_BT = np.arange(T, dtype=np.int32)[None]


@pytest.mark.parametrize('tau', [10.0, 0.5])
def test_logits_grow_and_fall_by_distance_as_in_the_paper(tau: float) -> None:
    bias = ScaleInvariant(tau=tau).bias(3, None)
    distance_TT = np.abs(np.arange(T)[:, None] - np.arange(T))
    growth_TT = np.log(distance_TT / tau + 1)
    factors_NTT = factors_as_array(bias, T, T, None)
    assert factors_NTT is not None and factors_NTT.shape == (3, T, T)
    np.testing.assert_allclose(factors_NTT[1], np.sqrt(1 + 2 * growth_TT), rtol=1e-6)
    np.testing.assert_allclose(as_array(bias, T, T, None)[2], -2 * growth_TT, rtol=1e-5)


def test_ranges_that_grow_by_a_factor_weigh_the_same() -> None:
    """Of standard normal products, a row's expected weights exp(m + a^2 / 2) over t .. 10 t: what
    the method is for; without it they grow tenfold."""
    bias, products = ScaleInvariant().bias(1, None), np.random.default_rng(0).normal(size=100_000)
    distance_D = jnp.arange(100_000)
    factors_D, bias_D = bias.factors_by_distance(distance_D)[0], bias.by_distance(distance_D)[0]
    expected_D = np.exp(np.asarray(bias_D, np.float64) + np.asarray(factors_D, np.float64) ** 2 / 2)
    sums = [expected_D[10**k : 10 ** (k + 1)].sum() for k in (2, 3, 4)]
    np.testing.assert_allclose(sums, sums[-1], rtol=0.06)
    entropies = []
    for low in (100, 1000, 10_000):
        logits = factors_D * products + bias_D
        weights = np.exp(np.asarray(logits[low : 10 * low], np.float64))
        weights /= weights.sum()
        entropies.append(-np.sum(weights * np.log(weights)))
    assert max(entropies) - min(entropies) < np.log(10)


def test_the_fastest_pairs_turn() -> None:
    x_BTNH = cases.normal(0, 1, T, 2, H)
    found = cases.encode(ScaleInvariant(share=0.5, base=500.0), x_BTNH, x_BTNH, POSITIONS_BT, T)
    wanted = cases.encode(RoPE(500.0, share=0.5), x_BTNH, x_BTNH, POSITIONS_BT, T)
    np.testing.assert_array_equal(found[0], wanted[0])
    still, _ = cases.encode(ScaleInvariant(share=0.0), x_BTNH, x_BTNH, POSITIONS_BT, T)
    np.testing.assert_array_equal(still, x_BTNH)


def test_heads_that_cannot_be_rotated_are_refused() -> None:
    with pytest.raises(ValueError, match=r'^head_dim is 7; .* even'):
        ScaleInvariant().check(7)
    with pytest.raises(ValueError, match=r'^share is 0.1; none of 4 pairs'):
        ScaleInvariant(share=0.1).check(8)
    ScaleInvariant(share=0.0).check(7)
