from __future__ import annotations

import numpy as np
import pytest

from nope.evals import batching

SEQUENCES = [np.array(ids, np.int32) for ids in ([5, 6], [5], [300, 1], [5, 6, 7], [2], [], [5])]


def test_padded_lengths_are_few_and_near() -> None:
    """Eight between a power of two and the next, and fewer where that would be less than 16 apart:
    an eighth more at most."""
    tokens = np.arange(1, 5000)
    padded = np.array([batching.padded_length(int(n)) for n in tokens])
    assert np.all(padded >= tokens) and np.all(np.diff(padded) >= 0)
    assert np.all(padded % 16 == 0) and np.all(padded - tokens < np.maximum(16, tokens / 8))
    for power in 2 ** np.arange(7, 12):
        assert len(set(padded[(padded > power) & (padded <= 2 * power)])) == 8
    np.testing.assert_array_equal(padded[padded == tokens], np.unique(padded[padded < 5000]))


@pytest.mark.parametrize(
    ('rows', 'most', 'parts', 'expected'),
    [(1, 100, 1, 1), (3, 100, 1, 4), (65, 100, 1, 100), (100, 100, 1, 100), (9, 96, 8, 16)],
)
def test_rows_are_a_power_of_two_or_the_most(
    rows: int, most: int, parts: int, expected: int
) -> None:
    assert batching.padded_rows(rows, most, parts) == expected


def test_every_part_of_the_batch_has_its_tokens() -> None:
    assert batching.most_rows(1000, 300, 1) == 3
    assert batching.most_rows(1000, 300, 4) == 12
    assert batching.most_rows(100, 300, 4) == 4


def test_prompts_stand_at_the_right_and_sequences_at_the_left() -> None:
    found = batching.left_padded(SEQUENCES[:2], 3, 3)
    assert found.dtype == np.int32 and found.tolist() == [[0, 5, 6], [0, 0, 5], [0, 5, 6]]
    found = batching.right_padded(SEQUENCES[:2], 3, 3)
    assert found.dtype == np.int32 and found.tolist() == [[5, 6, 0], [5, 0, 0], [0, 0, 0]]


def test_sequences_that_begin_alike_stand_together() -> None:
    """In the order of their numbers, where 300 comes after 5; equal ones as they came."""
    assert batching.by_prefix(SEQUENCES) == [5, 4, 1, 6, 0, 3, 2]


@pytest.mark.parametrize(
    ('first', 'second', 'expected'), [(0, 3, 2), (0, 1, 1), (0, 2, 0), (5, 0, 0), (3, 3, 3)]
)
def test_what_two_begin_with(first: int, second: int, expected: int) -> None:
    assert batching.shared_prefix(SEQUENCES[first], SEQUENCES[second]) == expected


@pytest.mark.parametrize(
    ('rows', 'most', 'parts', 'expected'),
    [
        (8, 7, 1, 4),
        (7, 7, 1, 7),
        (5, 7, 1, 7),
        (3, 16, 1, 4),
        (15, 7, 1, 5),
        (8, 4, 2, 4),
        (9, 8, 2, 6),
    ],
)
def test_batches_are_as_few_as_can_be_and_even(
    rows: int, most: int, parts: int, expected: int
) -> None:
    each = batching.even_rows(rows, most, parts)
    assert each == expected
    assert each % parts == 0 and each <= most
    assert -(-rows // each) == -(-rows // most)
