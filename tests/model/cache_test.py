"""What a cache says of its slots, and how its rows are moved."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nope.model.cache import Cache, LayerCache, empty
from tests import tiny

SLOTS = 6
PADDING = np.array([0, 2, 5], np.int32)
LENGTH = np.array([9, 8, 7], np.float32)


def numbered(padding: np.ndarray | None = PADDING, filled: int = 4) -> Cache:
    """Three rows; every number in it is another one."""
    shape = 3, SLOTS, tiny.MODEL.kv_heads, tiny.MODEL.head_dim
    numbers = np.arange(4 * np.prod(shape), dtype=np.float32).reshape(2, 2, *shape)
    layers = tuple(LayerCache(keys, values) for keys, values in numbers)
    return Cache(layers, filled, padding, LENGTH)


def test_an_empty_cache_has_room_for_every_layer_in_the_models_dtype() -> None:
    cache = empty(tiny.model(layers=3, dtype='bfloat16'), jnp.asarray(LENGTH), SLOTS, PADDING)
    assert (cache.slots, cache.filled, len(cache.layers)) == (SLOTS, 0, 3)
    for array in jax.tree.leaves(cache.layers):
        assert array.shape == (3, SLOTS, 2, 8) and array.dtype == jnp.bfloat16
    tiny.assert_same((cache.padding_B, cache.length_B), (PADDING, LENGTH))


def test_positions_count_from_each_rows_first_token() -> None:
    """And are 0 in its padding, not below; nor do they go beyond its length."""
    assert numbered().positions(2).tolist() == [[4, 5], [2, 3], [0, 0]]
    assert numbered(filled=0).positions(3).tolist() == [[0, 1, 2], [0, 0, 0], [0, 0, 0]]
    short = numbered(padding=None)._replace(length_B=np.array([9, 5, 1], np.float32))
    assert short.positions(2).tolist() == [[4, 5], [4, 4], [0, 0]]


def test_padding_is_a_segment_of_its_own() -> None:
    found_BT, found_BS = numbered(filled=1).segments(2)
    np.testing.assert_array_equal(found_BT, [[1, 1], [0, 1], [0, 0]])
    np.testing.assert_array_equal(
        found_BS, [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1]]
    )
    assert numbered(padding=None).segments(2) == (None, None)


def test_tokens_are_written_from_a_slot_on() -> None:
    layer = jax.tree.map(jnp.asarray, numbered().layers[0])
    keys, values = (np.full((3, 2, 2, 8), number, np.float16) for number in (0.5, 0.25))
    found = layer.write(jnp.asarray(keys), jnp.asarray(values), jnp.int32(4))
    for old, new, written in zip(layer[:2], found[:2], (keys, values), strict=True):
        expected = np.concatenate([old[:, :4], written.astype(np.float32)], axis=1)
        tiny.assert_same(new, expected)


def test_rows_are_taken_with_all_that_belongs_to_them() -> None:
    cache, rows = numbered(), np.array([2, 0, 0, 1])
    layers = jax.tree.map(lambda x: x[rows], cache.layers)
    tiny.assert_same(cache.take(rows), Cache(layers, 4, PADDING[rows], LENGTH[rows]))
    assert numbered(padding=None).take(rows).padding_B is None


def test_rows_are_reordered_from_a_slot_on() -> None:
    """Bit for bit, also where groups of rows take from their own alone."""
    cache, rows = jax.tree.map(jnp.asarray, numbered()), np.array([1, 1, 0])
    found = cache.reorder(rows, 3)
    for old, new in zip(jax.tree.leaves(cache.layers), jax.tree.leaves(found.layers), strict=True):
        tiny.assert_same(new, np.concatenate([old[:, :3], old[rows, 3:]], axis=1))
    tiny.assert_same(found._replace(layers=()), cache._replace(layers=()))
    pairs, rows = cache.take(np.array([0, 1, 2, 0])), np.array([1, 1, 3, 2])
    tiny.assert_same(pairs.reorder(rows, 3, groups=2), pairs.reorder(rows, 3))
