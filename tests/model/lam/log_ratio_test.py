"""Lambda as a ratio of logarithms, by length."""

from __future__ import annotations

import numpy as np
import pytest

from nope.model.lam.log_length import LogLength
from nope.model.lam.log_ratio import LogRatio
from nope.runtime.errors import FieldError
from tests.model.lam.multipliers import by_length


def test_the_values_are_the_logarithm_to_the_base_of_the_training_length() -> None:
    found = by_length(LogRatio(512), LogRatio.published, [512, 1024, 4096])
    np.testing.assert_allclose(found, np.log([512, 1024, 4096]) / np.log(512), rtol=1e-6)
    inside = by_length(LogRatio(512, inside=True), LogRatio.published, [1, 16, 512, 1024])
    np.testing.assert_allclose(inside, [0, 4 / 9, 1, 10 / 9], rtol=1e-6, atol=1e-6)


def test_it_is_the_base_model_up_to_the_training_length() -> None:
    np.testing.assert_array_equal(by_length(LogRatio(64), 3.0, [1, 16, 63, 64]), 1.0)


def test_a_coefficient_of_one_is_that_of_log_length_over_the_logarithm() -> None:
    lengths = [1, 64, 96, 512]
    same = by_length(LogLength(64), 1.7 / np.log(64), lengths)
    np.testing.assert_allclose(by_length(LogRatio(64), 1.7, lengths), same, rtol=1e-6)


def test_a_length_without_a_logarithm_is_refused() -> None:
    with pytest.raises(FieldError, match=r'^train_length is 1; it must be at least 2'):
        LogRatio(1)
