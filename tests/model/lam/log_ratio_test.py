"""Lambda as a ratio of logarithms, by length."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import lam
from nope.model.lam.log_length import LogLength
from nope.model.lam.log_ratio import LogRatio
from nope.runtime.errors import FieldError


def at(form: lam.Form, coefficient: float, lengths: list[int]) -> np.ndarray:
    """Multipliers in sequences of so many tokens."""
    coefficients_LN = jnp.asarray([[coefficient]], jnp.float32)
    return np.array([form.multipliers(coefficients_LN, n)[0, 0] for n in lengths])


def test_the_values_are_the_logarithm_to_the_base_of_the_training_length() -> None:
    found = at(LogRatio(512), LogRatio.published, [512, 1024, 4096])
    np.testing.assert_allclose(found, np.log([512, 1024, 4096]) / np.log(512), rtol=1e-6)
    inside = at(LogRatio(512, inside=True), LogRatio.published, [1, 16, 512, 1024])
    np.testing.assert_allclose(inside, [0, 4 / 9, 1, 10 / 9], rtol=1e-6, atol=1e-6)


def test_it_is_the_base_model_up_to_the_training_length() -> None:
    np.testing.assert_array_equal(at(LogRatio(64), 3.0, [1, 16, 63, 64]), 1.0)


def test_a_coefficient_of_one_is_that_of_log_length_over_the_logarithm() -> None:
    lengths = [1, 64, 96, 512]
    same = at(LogLength(64), 1.7 / np.log(64), lengths)
    np.testing.assert_allclose(at(LogRatio(64), 1.7, lengths), same, rtol=1e-6)


def test_a_length_without_a_logarithm_is_refused() -> None:
    with pytest.raises(FieldError, match=r'^train_length is 1; it must be at least 2'):
        LogRatio(1)
