from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import attention
from nope.evals.scale_grid import fit_log
from nope.model import lam
from tests import tiny, vectors

B, T, N, H = 2, 5, 3, 16
COEFFICIENTS = jnp.asarray([[0.5, 1.0, 1.7], [0.0, 3.0, 1.3]], jnp.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


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
    for length in (96, 128, 512):
        expected = 1 + np.asarray(COEFFICIENTS) * np.float64(math.log(length / 64))
        np.testing.assert_allclose(form.multiples(COEFFICIENTS, length), expected, rtol=1e-6)
        traced = jax.jit(form.multiples)(COEFFICIENTS, jnp.float32(length))
        np.testing.assert_allclose(traced, expected, rtol=1e-6)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('uniform_fit', starting_with='a='))
def test_log_length_is_the_form_of_the_published_fits(
    name: str, expected: dict[str, float]
) -> None:
    """1 + a ln(times the training length), from which the fit recovers a."""
    a, form = float(name.removeprefix('a=')), lam.LogLength(train_length=2048)
    lengths = np.array([2048 * int(times) for times in expected])
    found = [form.multiples(jnp.asarray([[a]]), length)[0, 0] for length in lengths.tolist()]
    np.testing.assert_allclose(found, list(expected.values()), rtol=vectors.RTOL)
    assert fit_log(lengths, np.array(list(expected.values())), 2048) == pytest.approx((a, 1))


@pytest.mark.parametrize(('value', 'expected'), vectors.entries('bf16_round'))
def test_a_multiple_stays_float32(value: str, expected: float) -> None:
    """Where it were kept in bfloat16, as the papers' code does, it would be another one."""
    coefficient = jnp.full((1, 1), float(value), jnp.float32)
    found = lam.Constant().multiples(coefficient, 1)
    assert found[0, 0] == np.float32(value) and found.dtype == jnp.float32
    assert float(found[0, 0].astype(jnp.bfloat16)) == expected


@pytest.mark.parametrize('form', [lam.Constant(), lam.LogLength(train_length=64)])
def test_the_neutral_coefficient_leaves_the_softmax_as_it_is(form: lam.Form) -> None:
    neutral = lam.neutral(form, 2, 3)
    assert neutral.shape == (2, 3)
    assert neutral.dtype == jnp.float32
    for length in (10, 64, 1000):
        np.testing.assert_array_equal(form.multiples(neutral, length), 1.0)


def test_a_multiple_of_one_is_the_usual_softmax_factor() -> None:
    q_BTNH = jnp.asarray(normal(B, T, N, H))
    found = lam.scale_queries(q_BTNH, jnp.ones(3))
    np.testing.assert_array_equal(found, q_BTNH / 4)


def test_queries_are_scaled_head_by_head_and_rounded_once() -> None:
    q_BTNH = jnp.asarray(normal(B, T, N, H)).astype(jnp.bfloat16)
    found = lam.scale_queries(q_BTNH, COEFFICIENTS[0])
    exact = q_BTNH.astype(jnp.float32) * (COEFFICIENTS[0] / 4)[:, None]
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))


# Entropy under a multiple


def last_entropy(multiple: jax.Array, logits_T: jax.Array) -> jax.Array:
    """Of the weights of a query with these logits (the last of a sequence), in nats."""
    q_BTNH = jnp.ones((1, logits_T.size, 1, 1))
    scaled = lam.scale_queries(q_BTNH, multiple[None], softmax_scale=1.0)
    found = attention(scaled, logits_T[None, :, None, None], q_BTNH, entropy=True)
    assert found.entropy is not None
    return found.entropy[0, 0, -1]


def bits(logits: Any, multiple: float = 1.0) -> float:
    """Entropy of the last query's weights."""
    nats = jax.jit(last_entropy, compiler_options=tiny.QUICK)
    return float(nats(jnp.float32(multiple), jnp.asarray(logits, jnp.float32))) / math.log(2)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('entropy_bits'))
def test_entropies(name: str, expected: Any) -> None:
    if name == 'softmax(lam*[0,1,2])':
        found = {multiple: bits([0, 1, 2], float(multiple)) for multiple in expected}
        assert found == pytest.approx(expected, rel=vectors.RTOL)
    elif name.startswith('uniform_'):
        length = int(name.removeprefix('uniform_'))
        for multiple in (0.5, 1.0, 3.0):
            assert bits(np.ones(length), multiple) == pytest.approx(expected, rel=vectors.RTOL)
    else:
        weights = [float(weight) for weight in name.removeprefix('p=').split(',')]
        assert bits(np.log(weights)) == pytest.approx(expected, rel=vectors.RTOL)


def test_entropy_falls_with_the_multiple() -> None:
    """By the multiple times the variance of the logits under the weights (in nats)."""
    logits = normal(9)
    gradient = jax.jit(jax.grad(last_entropy), compiler_options=tiny.QUICK)
    for multiple in (0.5, 1.0, 2.0):
        weights = np.exp(multiple * logits.astype(np.float64))
        weights /= weights.sum()
        variance = weights @ logits**2 - (weights @ logits) ** 2
        found = gradient(jnp.float32(multiple), jnp.asarray(logits))
        np.testing.assert_allclose(found, -multiple * variance, rtol=1e-5)


@pytest.mark.parametrize('shape', [(3,), (3, 2), (2, 1), (1, 3), (2, 3, 1)])
def test_a_wrong_shape_does_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r'lam has shape .* takes \(2, 3\)'):
        lam.check_shape(jnp.ones(shape), 2, 3)
    lam.check_shape(COEFFICIENTS, 2, 3)
