from __future__ import annotations

import numpy as np

from nope.attention.bias import as_array
from nope.positions import Sandwich


def test_heads_have_the_product_of_sinusoidal_vectors_divided_by_8_h_over_n() -> None:
    T, N, D = 40, 4, 16
    at = np.arange(T)[:, None] / 10_000 ** (np.arange(D // 2) * 2 / D)
    vectors_TD = np.concatenate([np.sin(at), np.cos(at)], axis=1)
    ratio_N = np.arange(1, N + 1) * 8 / N
    expected = (vectors_TD @ vectors_TD.T - D / 2) / ratio_N[:, None, None]
    found = as_array(Sandwich(dims=D).bias(N, None), T, T, None)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_near_keys_weigh_more_than_far_ones_in_every_head() -> None:
    by_distance_ND = np.asarray(as_array(Sandwich().bias(6, None), 300, 1, None))[..., 0]
    assert np.all(by_distance_ND[:, 0] == 0)
    assert np.all(by_distance_ND[:, 1:4] > by_distance_ND[:, 200:].max(axis=1, keepdims=True))
