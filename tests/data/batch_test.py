"""Training batches as values."""

from __future__ import annotations

import numpy as np

from nope.data import Batch


def test_a_block_is_its_tokens_and_the_next_ones() -> None:
    blocks = np.arange(12, dtype=np.int32).reshape(2, 6)
    batch = Batch.of_blocks(blocks)
    np.testing.assert_array_equal(batch.tokens, blocks[:, :5])
    np.testing.assert_array_equal(batch.targets, blocks[:, 1:])
    assert batch[2:] == (None, None, None)


def test_documents_are_numbered_and_counted_from_their_first_token() -> None:
    """Of the second row the first document began before the block, and one begins as it ends."""
    blocks = np.arange(14, dtype=np.int32).reshape(2, 7)
    begins = np.array([[1, 0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0, 1]], bool)
    batch = Batch.of_documents(blocks, begins)
    np.testing.assert_array_equal(batch.tokens, blocks[:, :6])
    np.testing.assert_array_equal(batch.targets, blocks[:, 1:])
    np.testing.assert_array_equal(batch.segments, [[0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 1, 1]])
    np.testing.assert_array_equal(batch.positions, [[0, 1, 2, 0, 0, 1], [0, 1, 0, 1, 2, 3]])
    np.testing.assert_array_equal(batch.weights, [[1, 1, 0, 0, 1, 1], [1, 0, 1, 1, 1, 0]])
    kinds = [array.dtype.name for array in batch]
    assert kinds == ['int32', 'int32', 'float32', 'int32', 'int32']


def test_a_shorter_batch_is_that_of_shorter_blocks() -> None:
    blocks = np.arange(12, dtype=np.int32).reshape(2, 6)
    short, expected = Batch.of_blocks(blocks).first(3), Batch.of_blocks(blocks[:, :4])
    np.testing.assert_array_equal(short.tokens, expected.tokens)
    np.testing.assert_array_equal(short.targets, expected.targets)
    assert short[2:] == (None, None, None)
    full = Batch(*np.arange(20).reshape(5, 2, 2))
    for array, whole in zip(full.first(1), full, strict=True):
        np.testing.assert_array_equal(array, whole[:, :1])
