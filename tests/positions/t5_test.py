from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.bias import as_array
from nope.positions import T5Bias, Table
from tests import vectors
from tests.positions import cases


@pytest.mark.parametrize('expected', vectors.whole('t5_bucket_unidirectional_32_128'))
def test_buckets(expected: list[int]) -> None:
    bias = T5Bias().bias(1, jnp.zeros((32, 1)))
    np.testing.assert_array_equal(bias.bucket(jnp.arange(len(expected))), expected)


@pytest.mark.parametrize(('buckets', 'distance'), [(2, 2), (8, 12), (32, 128)])
def test_buckets_grow_with_the_distance_up_to_the_last(buckets: int, distance: int) -> None:
    """By one at most up to half of them; all distances from the largest on are alike."""
    bias = T5Bias(buckets, distance).bias(1, jnp.zeros((buckets, 1)))
    found = np.asarray(bias.bucket(jnp.arange(-3, 2 * distance)))
    np.testing.assert_array_equal(found[:3], 0)
    at = found[3:]
    assert np.all(np.diff(at) >= 0)
    np.testing.assert_array_equal(at[: buckets // 2], np.arange(buckets // 2))
    np.testing.assert_array_equal(at[distance:], buckets - 1)


def test_the_bias_of_a_distance_is_its_buckets_row() -> None:
    T, position = 20, T5Bias(8, 12)
    table_PN = cases.normal(0, 8, 4)
    bias = position.bias(4, jnp.asarray(table_PN))
    bias_NTS = np.asarray(as_array(bias, T, T, None))
    bucket = np.asarray(bias.bucket(jnp.arange(T)))
    for t in range(T):
        expected = table_PN[bucket[t - np.arange(t + 1)]].T
        np.testing.assert_array_equal(bias_NTS[:, t, : t + 1], expected)


def test_the_table_is_one_for_all_layers() -> None:
    assert T5Bias().table(768, 12) == Table((32, 12), ('buckets', 'heads'), 768**-0.5, neutral=True)
