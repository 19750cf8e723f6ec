"""Gradients of both rules of weights, and rows that see nothing."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.dense.entmax import entmax
from nope.attention.dense.stick_breaking import stick_breaking

each_rule = pytest.mark.parametrize('rule', [entmax, stick_breaking])


@each_rule
def test_gradients_are_slopes(rule: Callable) -> None:
    """Of weights, the log of their sum and entropy together, in float64."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(2)
        logits_S, pull_S, move_S = (jnp.asarray(rng.normal(size=9)) for _ in range(3))
        seen_S = jnp.asarray(np.arange(9) != 4)

        def pulled(logits_S: jax.Array) -> jax.Array:
            weights_S, log_sum, entropy = rule(logits_S, seen_S)
            return jnp.sum(pull_S * weights_S) + 0.5 * log_sum + entropy

        pulled = jax.jit(pulled)
        gradient_S = jax.jit(jax.grad(pulled))(logits_S)
        ends = [pulled(logits_S + side * 1e-6 * move_S) for side in (1, -1)]
        np.testing.assert_allclose(gradient_S @ move_S, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
        assert gradient_S[4] == 0
        if rule is entmax:  # a number added to all logits changes nothing
            np.testing.assert_allclose(np.sum(gradient_S), 0, atol=1e-12)


@each_rule
def test_rows_that_see_nothing_are_0_and_so_are_their_gradients(rule: Callable) -> None:
    logits_RS = jnp.asarray(np.random.default_rng(3).normal(size=(2, 5)), jnp.float32)
    seen_RS = jnp.asarray([[False] * 5, [True, False, True, True, False]])

    def pulled(logits_RS: jax.Array) -> jax.Array:
        weights_RS, log_sum_R, entropy_R = rule(logits_RS, seen_RS)
        finite_R = jnp.where(jnp.isfinite(log_sum_R), log_sum_R, 0.0)
        return jnp.sum(weights_RS**2) + jnp.sum(entropy_R) + jnp.sum(finite_R)

    weights_RS, log_sum_R, entropy_R = rule(logits_RS, seen_RS)
    assert np.all(np.asarray(weights_RS)[~np.asarray(seen_RS)] == 0)
    assert log_sum_R[0] == -np.inf < log_sum_R[1]
    assert entropy_R[0] == 0 < entropy_R[1]
    gradient_RS = np.asarray(jax.jit(jax.grad(pulled))(logits_RS))
    assert np.all(np.isfinite(gradient_RS)) and np.all(gradient_RS[0] == 0)
    assert np.any(gradient_RS[1] != 0)
