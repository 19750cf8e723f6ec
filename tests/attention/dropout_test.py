"""Dropout by keys: how much it keeps, how it scales, and what its masks depend on."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask
from nope.attention.dropout import Dropout, dropped
from nope.attention.reference import reference_attention

ROWS = 8


def keys(count: int = ROWS) -> jax.Array:
    return jax.random.split(jax.random.key(3), count)


def test_the_share_that_stays_is_one_less_the_rate_and_the_mean_is_kept() -> None:
    rate = 0.1
    ones = jnp.ones((ROWS, 64, 96))
    found = np.asarray(dropped(rate, ones, keys()))
    kept = found != 0
    np.testing.assert_allclose(found[kept], 1 / (1 - round(rate * 2**16) / 2**16), rtol=1e-6)
    deviation = np.sqrt(rate * (1 - rate) / found.size)
    assert abs(kept.mean() - (1 - rate)) < 4 * deviation
    by_row = np.sqrt(rate * (1 - rate) / found[0].size)
    assert np.all(np.abs(kept.mean(axis=(1, 2)) - (1 - rate)) < 5 * by_row)
    for axis in (1, 2):  # no token and no feature is left out more than others
        assert np.ptp(kept.mean(axis=axis)) < 0.6


def test_a_row_s_mask_follows_its_key_alone() -> None:
    ones = jnp.ones((ROWS, 5, 7))
    whole = np.asarray(dropped(0.5, ones, keys()))
    some = np.array([6, 1])
    np.testing.assert_array_equal(whole[some], dropped(0.5, ones[some], keys()[some]))
    masks = {row.tobytes() for row in whole}
    assert len(masks) == ROWS


def test_entries_are_independent_of_those_at_any_distance() -> None:
    """An entry and any other at the same distance agree as often as two coins do."""
    rate, T = 0.5, 64
    kept = np.asarray(dropped(rate, jnp.ones((256, T)), keys(256))) != 0
    for distance in range(1, T):  # four neighbours share a counter
        agree = kept[:, distance:] == kept[:, :-distance]
        assert abs(agree.mean() - 0.5) < 5 * np.sqrt(0.25 / agree.size), distance


@pytest.mark.parametrize('rate', [1e-9, 1e-5, 0.3, 0.99999, 1 - 1e-9])
def test_a_rate_is_rounded_but_neither_to_nothing_nor_to_all(rate: float) -> None:
    found = np.asarray(dropped(rate, jnp.ones((1, 2**18)), keys(1)))
    kept = min(max(round((1 - rate) * 2**16), 1), 2**16 - 1) / 2**16
    assert abs((found != 0).mean() - kept) < 5 * np.sqrt(kept * (1 - kept) / found.size)
    np.testing.assert_allclose(found.max(), 1 / kept, rtol=1e-5)


@pytest.mark.parametrize('shape', [(), (1,), (3,), (5, 2), (4, 3, 7)])
def test_any_shape_behind_the_keys(shape: tuple[int, ...]) -> None:
    found = np.asarray(dropped(0.5, jnp.ones((64, *shape)), keys(64)))
    assert found.shape == (64, *shape)
    assert set(np.unique(found)) == {0.0, 2.0}
    assert len({row.tobytes() for row in found}) >= min(64, 2)


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_the_dtype_stays(dtype: str) -> None:
    assert dropped(0.25, jnp.ones((ROWS, 3), dtype), keys()).dtype == dtype


def test_weights_of_attention_are_dropped_and_its_entropy_is_that_without() -> None:
    """Values that are unit vectors show the weights."""
    B, T, N, K, rate = 2, 16, 4, 2, 0.3
    draw = np.random.default_rng(0)
    q_BTNH = jnp.asarray(draw.normal(size=(B, T, N, T)), 'float32')
    k_BSKH = jnp.asarray(draw.normal(size=(B, T, K, T)), 'float32')
    v_BSKH = jnp.broadcast_to(jnp.eye(T)[None, :, None], k_BSKH.shape)
    rules = {'mask': Mask(), 'bias': None, 'entropy': True}
    whole = reference_attention(q_BTNH, k_BSKH, v_BSKH, **rules)
    keys_BN = keys(B * N).reshape(B, N)
    found = reference_attention(q_BTNH, k_BSKH, v_BSKH, dropout=Dropout(rate, keys_BN), **rules)
    np.testing.assert_array_equal(found.lse, whole.lse)
    np.testing.assert_array_equal(found.entropy, whole.entropy)
    mask_BNTS = np.asarray(dropped(rate, jnp.ones((B, N, T, T)), keys_BN))
    expected_BTNS = np.asarray(whole.out) * mask_BNTS.swapaxes(1, 2)
    np.testing.assert_allclose(found.out, expected_BTNS, rtol=1e-5)
    assert 0.5 < (np.asarray(found.out) != 0).sum() / (np.asarray(whole.out) != 0).sum() < 0.9
