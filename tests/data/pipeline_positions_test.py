"""Random positions of training examples: what they are, and of what they are a function."""

from __future__ import annotations

import itertools
import pathlib

import numpy as np
import pytest

from nope.data import Batch, DataConfig, training_batches
from nope.data.pipeline import positions_of
from nope.data.sources import Text

LENGTH, BATCH, RANGE = 31, 6, 100


@pytest.fixture
def config(corpus) -> DataConfig:
    return DataConfig((Text(str(corpus)),))


def batches(config: DataConfig, cache: pathlib.Path, count: int = 4, **options) -> list[Batch]:
    defaults = {
        **{'length': LENGTH, 'batch_size': BATCH, 'seed': 0, 'start': 0, 'threads': 0},
        'position_range': RANGE,
    }
    stream = training_batches(config, cache=cache, **(defaults | options))
    return list(itertools.islice(stream, count))


def test_positions_are_a_sorted_subset_without_replacement() -> None:
    drawn = np.stack([positions_of(0, example, LENGTH, RANGE) for example in range(400)])
    assert drawn.dtype == np.int32 and drawn.min() >= 0 and drawn.max() < RANGE
    assert np.all(np.diff(drawn, axis=1) >= 1)
    share = np.bincount(drawn.ravel(), minlength=RANGE) / 400
    assert np.all(np.abs(share - LENGTH / RANGE) < 6 * np.sqrt(0.31 * 0.69 / 400))
    assert len(np.unique(drawn, axis=0)) == 400


def test_the_whole_range_is_every_position() -> None:
    np.testing.assert_array_equal(positions_of(3, 5, LENGTH, LENGTH), np.arange(LENGTH))


def test_they_are_a_function_of_seed_and_example_alone(config, tmp_path) -> None:
    """A stream that starts later and the rows of one process have those of the whole stream; the
    tokens are what they are without them."""
    whole = batches(config, tmp_path)
    later = batches(config, tmp_path, count=2, start=2)
    some = batches(config, tmp_path, rows=np.array([1, 4]))
    plain = batches(config, tmp_path, position_range=None)
    for found, expected in zip(later, whole[2:], strict=True):
        np.testing.assert_array_equal(found.positions, expected.positions)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
    for found, expected, without in zip(some, whole, plain, strict=True):
        np.testing.assert_array_equal(found.positions, expected.positions[[1, 4]])
        np.testing.assert_array_equal(expected.tokens, without.tokens)
        assert without.positions is None and expected.weights is None
    other = batches(config, tmp_path, count=1, seed=1)[0]
    assert not np.array_equal(other.positions, whole[0].positions)


def test_short_batches_have_positions_of_the_whole_range(config, tmp_path) -> None:
    """Drawn for the length of each batch, also in a stream that starts later."""
    lengths = (5, LENGTH, 9)
    found = batches(config, tmp_path, count=60, lengths=lengths)
    whole = batches(config, tmp_path, count=60)
    for number, (batch, full) in enumerate(zip(found, whole, strict=True)):
        length = lengths[number % 3]
        np.testing.assert_array_equal(batch.tokens, full.tokens[:, :length])
        np.testing.assert_array_equal(batch.targets, full.targets[:, :length])
        for row, positions in enumerate(batch.positions):
            drawn = positions_of(0, number * BATCH + row, length, RANGE)
            np.testing.assert_array_equal(positions, drawn)
    short = np.stack([batch.positions for batch in found[::3]]).reshape(-1, 5)
    share = short.mean(axis=0) / (RANGE - 1)
    np.testing.assert_allclose(share, np.arange(1, 6) / 6, atol=0.06)  # of order statistics
    later = batches(config, tmp_path, count=4, start=2, lengths=lengths)
    for one, other in zip(later, found[2:6], strict=True):
        np.testing.assert_array_equal(one.positions, other.positions)
