from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import lam

COEFFICIENTS = jnp.asarray([[0.5, 1.0, 1.7], [0.0, 3.0, 1.3]], jnp.float32)


def test_constant_is_the_coefficient_at_every_length() -> None:
    for length in (1, 64, 10_000):
        found = lam.Constant().multiples(COEFFICIENTS, length)
        np.testing.assert_array_equal(found, COEFFICIENTS)


def test_log_length_is_one_up_to_the_training_length() -> None:
    form = lam.LogLength(train_length=64)
    for length in (1, 63, 64):
        np.testing.assert_array_equal(form.multiples(COEFFICIENTS, length), 1.0)


def test_log_length_grows_with_the_logarithm_beyond_it() -> None:
    form = lam.LogLength(train_length=64)
    for times in (1.5, 2, 8):
        expected = 1 + np.asarray(COEFFICIENTS) * math.log(times)
        np.testing.assert_allclose(form.multiples(COEFFICIENTS, times * 64), expected, rtol=1e-6)
        traced = jax.jit(form.multiples)(COEFFICIENTS, jnp.float32(times * 64))
        np.testing.assert_allclose(traced, expected, rtol=1e-6)


@pytest.mark.parametrize('form', [lam.Constant(), lam.LogLength(train_length=64)])
def test_the_neutral_coefficient_leaves_the_softmax_as_it_is(form: lam.Form) -> None:
    neutral = lam.neutral(form, 2, 3)
    assert neutral.shape == (2, 3)
    assert neutral.dtype == jnp.float32
    for length in (10, 64, 1000):
        np.testing.assert_array_equal(form.multiples(neutral, length), 1.0)


def test_a_multiple_of_one_is_the_usual_softmax_factor() -> None:
    q_BTNH = jax.random.normal(jax.random.key(0), (2, 5, 3, 16))
    found = lam.scale_queries(q_BTNH, jnp.ones(3))
    np.testing.assert_array_equal(found, q_BTNH / 4)


def test_queries_are_scaled_head_by_head_and_rounded_once() -> None:
    q_BTNH = jax.random.normal(jax.random.key(0), (2, 5, 3, 16)).astype(jnp.bfloat16)
    found = lam.scale_queries(q_BTNH, COEFFICIENTS[0])
    exact = q_BTNH.astype(jnp.float32) * (COEFFICIENTS[0] / 4)[:, None]
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))


@pytest.mark.parametrize('shape', [(3,), (3, 2), (2, 1), (1, 3), (2, 3, 1)])
def test_a_wrong_shape_does_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r'lam has shape .* takes \(2, 3\)'):
        lam.check_shape(jnp.ones(shape), 2, 3)
    lam.check_shape(COEFFICIENTS, 2, 3)
