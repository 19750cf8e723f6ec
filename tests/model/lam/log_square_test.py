"""Lambda with two numbers a head."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nope.model.lam.log_length import LogLength
from nope.model.lam.log_square import LogSquare

COEFFICIENTS = jnp.asarray([[[0.4, 0.0], [0.4, -0.1]], [[0.0, 0.2], [0.0, 0.0]]], jnp.float32)


def test_it_is_a_parabola_in_the_logarithm_beyond_the_training_length() -> None:
    form = LogSquare(64)
    for length in (1, 64, 96, 512):
        x = max(np.log(length / 64), 0)
        expected = 1 + np.asarray(COEFFICIENTS, np.float64) @ [x, x**2]
        np.testing.assert_allclose(form.multipliers(COEFFICIENTS, length), expected, rtol=1e-6)


def test_without_its_second_number_it_is_log_length() -> None:
    first = COEFFICIENTS.at[..., 1].set(0)
    for length in (64, 100, 1000):
        expected = LogLength(64).multipliers(first[..., 0], length)
        np.testing.assert_array_equal(LogSquare(64).multipliers(first, length), expected)
