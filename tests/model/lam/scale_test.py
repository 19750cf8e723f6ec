"""Queries scaled by lambda, and the entropy of their weights."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import lam

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
