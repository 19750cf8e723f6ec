"""Masks say the same from indices as from the dense array, and travel through jax."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask

IDS = jnp.array([[1, 1, 2, 2, 2, 0], [3, 3, 3, 3, 1, 1]])


def test_dense_mask() -> None:
    dense = np.asarray(Mask(True, IDS, IDS).as_array(2, 6, 6))
    ids = np.asarray(IDS)
    for b, i, j in np.ndindex(2, 6, 6):
        assert dense[b, i, j] == (j <= i and ids[b, i] == ids[b, j])


@pytest.mark.parametrize('causal', [True, False])
@pytest.mark.parametrize('window', [None, 1, 3, 100])
@pytest.mark.parametrize('offset', [0, 2, 9])
def test_dense_mask_of_queries_that_continue(causal: bool, window: int | None, offset: int) -> None:
    dense = np.asarray(Mask(causal, window=window, offset=offset).as_array(1, 4, 7))
    for t, j in np.ndindex(4, 7):
        i = offset + t
        near = window is None or abs(i - j) < window
        assert dense[0, t, j] == (near and (j <= i or not causal))


def test_no_rule_hides_nothing() -> None:
    mask = Mask(causal=False)
    assert mask.visible(jnp.arange(3), jnp.arange(5)) is None
    assert np.all(np.asarray(mask.as_array(2, 3, 5)))


def test_a_block_is_a_part_of_the_dense_mask() -> None:
    mask = Mask(True, IDS, IDS)
    t, s = jnp.arange(2, 5), jnp.arange(1, 6)
    block = mask.visible(t, s, IDS[:, 2:5], IDS[:, 1:6])
    np.testing.assert_array_equal(block, mask.as_array(2, 6, 6)[:, 2:5, 1:6])


def test_ids_are_leaves_and_causal_is_static() -> None:
    mask = Mask(False, IDS, IDS)
    leaves, structure = jax.tree.flatten(mask)
    assert len(leaves) == 2
    assert jax.tree.unflatten(structure, leaves).causal is False
    assert structure != jax.tree.structure(Mask(True, IDS, IDS))
    assert structure != jax.tree.structure(Mask(False, IDS, IDS, window=3))
    dense = jax.jit(lambda mask: mask.as_array(2, 6, 6))(mask)
    np.testing.assert_array_equal(dense, mask.as_array(2, 6, 6))
