"""Lambda that grows with the logarithm of the position."""

from __future__ import annotations

import numpy as np

from nope.model.lam.log_position import LogPosition
from tests.model.lam.multipliers import by_keys


def test_the_values_are_inkling_s() -> None:
    found = by_keys(LogPosition(2048), LogPosition.published, [1, 2047, 2048, 4096, 8192, 16384])
    np.testing.assert_allclose(found, [1, 1, 1, 1.0693147, 1.1386294, 1.2079442], rtol=1e-6)


def test_it_is_the_base_model_up_to_the_training_length() -> None:
    np.testing.assert_array_equal(by_keys(LogPosition(64), 3.0, list(range(1, 65))), 1.0)
    assert np.all(np.diff(by_keys(LogPosition(64), 3.0, list(range(64, 200)))) > 0)


def test_from_a_length_of_one_it_is_the_logarithm_of_the_keys() -> None:
    found = by_keys(LogPosition(1), 0.4, [1, 2, 64])
    np.testing.assert_allclose(found, 1 + 0.4 * np.log([1.0, 2.0, 64.0]), rtol=1e-6)
