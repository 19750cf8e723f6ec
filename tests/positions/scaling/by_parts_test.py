from __future__ import annotations

import numpy as np
import pytest

from nope.positions import ByParts, Unscaled
from tests import vectors

PLAIN = vectors.VECTORS['rope']['inv_freq']


def frequencies(scaling: ByParts) -> np.ndarray:
    return np.asarray(scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, 1))


@pytest.mark.parametrize('factor', [2.0, 16.0])
def test_the_fastest_stay_and_the_slowest_are_interpolated_exactly(factor: float) -> None:
    """32 turns or more within the training length, and less than one; between them, in between."""
    found = frequencies(ByParts(factor, vectors.TRAIN_LENGTH))
    exact = vectors.BASE ** (-np.arange(0, vectors.DIMS, 2) / vectors.DIMS)
    turns = vectors.TRAIN_LENGTH * exact / (2 * np.pi)
    fast, slow = turns >= 32, turns < 1
    assert fast.sum() == 9 and slow.sum() == 11
    np.testing.assert_array_equal(found[fast], np.float32(exact[fast]))
    np.testing.assert_array_equal(found[slow], np.float32(exact[slow] / factor))
    between = ~(fast | slow)
    assert np.all(found[between] < exact[between])
    assert np.all(found[between] > exact[between] / factor)
    assert np.all(np.diff(found) < 0)


def test_a_factor_of_one_changes_nothing() -> None:
    plain = Unscaled().inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(frequencies(ByParts(1.0, 2048)), plain, rtol=vectors.RTOL)
