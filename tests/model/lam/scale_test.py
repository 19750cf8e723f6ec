"""Queries scaled by lambda, and the entropy of their weights."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import attention
from nope.model import lam
from tests import vectors

B, T, N, H = 2, 5, 3, 16
HEADS = jnp.asarray([0.5, 1.0, 1.7], jnp.float32)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_a_multiplier_of_one_is_the_usual_softmax_factor() -> None:
    q_BTNH = jnp.asarray(normal(B, T, N, H))
    found = lam.scale_queries(q_BTNH, jnp.ones(3))
    np.testing.assert_array_equal(found, q_BTNH / 4)


def test_queries_are_scaled_head_by_head_and_rounded_once() -> None:
    q_BTNH = jnp.asarray(normal(B, T, N, H)).astype(jnp.bfloat16)
    found = lam.scale_queries(q_BTNH, HEADS)
    exact = q_BTNH.astype(jnp.float32) * (HEADS / 4)[:, None]
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found, exact.astype(jnp.bfloat16))


@pytest.mark.parametrize('shape', [(N,), (N, N), (1, N, N), (N, N, N)])
@pytest.mark.parametrize('softmax_scale', [None, 0.3])
def test_rows_and_positions_may_have_their_own_multipliers(
    shape: tuple[int, ...], softmax_scale: float | None
) -> None:
    """As many rows as tokens and heads: no axis is taken for another one."""
    q_BTNH = jnp.asarray(normal(N, N, N, H))
    multipliers = jnp.asarray(np.random.default_rng(1).uniform(0.5, 2, shape), jnp.float32)
    of_token = multipliers[:, None] if multipliers.ndim == 2 else multipliers
    expected = q_BTNH * np.broadcast_to(of_token, (N, N, N))[..., None] * (softmax_scale or 0.25)
    found = lam.scale_queries(q_BTNH, multipliers, softmax_scale)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# Entropy under a multiplier


def last_entropy(multiplier: jax.Array, logits_T: jax.Array) -> jax.Array:
    """Of the weights of a query with these logits (the last of a sequence), in nats."""
    q_BTNH = jnp.ones((1, logits_T.size, 1, 1))
    scaled = lam.scale_queries(q_BTNH, multiplier[None], softmax_scale=1.0)
    found = attention(scaled, logits_T[None, :, None, None], q_BTNH, entropy=True)
    assert found.entropy is not None
    return found.entropy[0, 0, -1]


def bits(logits: Any, multiplier: float = 1.0) -> float:
    """Entropy of the last query's weights."""
    nats = jax.jit(last_entropy)
    return float(nats(jnp.float32(multiplier), jnp.asarray(logits, jnp.float32))) / math.log(2)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('entropy_bits'))
def test_entropies(name: str, expected: Any) -> None:
    if name == 'softmax(lam*[0,1,2])':
        found = {multiplier: bits([0, 1, 2], float(multiplier)) for multiplier in expected}
        assert found == pytest.approx(expected, rel=vectors.RTOL)
    elif name.startswith('uniform_'):
        length = int(name.removeprefix('uniform_'))
        for multiplier in (0.5, 1.0, 3.0):
            assert bits(np.ones(length), multiplier) == pytest.approx(expected, rel=vectors.RTOL)
    else:
        weights = [float(weight) for weight in name.removeprefix('p=').split(',')]
        assert bits(np.log(weights)) == pytest.approx(expected, rel=vectors.RTOL)


def test_entropy_falls_with_the_multiplier() -> None:
    """By the multiplier times the variance of the logits under the weights (in nats)."""
    logits = normal(9)
    gradient = jax.jit(jax.grad(last_entropy))
    for multiplier in (0.5, 1.0, 2.0):
        weights = np.exp(multiplier * logits.astype(np.float64))
        weights /= weights.sum()
        variance = weights @ logits**2 - (weights @ logits) ** 2
        found = gradient(jnp.float32(multiplier), jnp.asarray(logits))
        np.testing.assert_allclose(found, -multiplier * variance, rtol=1e-5)
