"""Entmax-1.5: the weights of its definition, exact zeros, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.dense.entmax import entmax

run = jax.jit(entmax)


def by_bisection(logits_S: np.ndarray) -> np.ndarray:
    """max(s / 2 - tau, 0)^2 with a sum of 1, in float64."""
    halves_S = np.asarray(logits_S, np.float64) / 2
    low, high = halves_S.max() - 1, halves_S.max()
    for _ in range(100):
        tau = (low + high) / 2
        enough = np.sum(np.maximum(halves_S - tau, 0) ** 2) > 1
        low, high = (tau, high) if enough else (low, tau)
    return np.maximum(halves_S - low, 0) ** 2


def by_sorting(logits_S: np.ndarray) -> np.ndarray:
    """The threshold of the largest support that keeps above its own, in float64."""
    halves_S = np.asarray(logits_S, np.float64) / 2
    sorted_S = np.sort(halves_S)[::-1]
    count_S = np.arange(1, sorted_S.size + 1)
    mean_S = np.cumsum(sorted_S) / count_S
    spread_S = np.cumsum(sorted_S**2) - count_S * mean_S**2
    tau_S = mean_S - np.sqrt(np.maximum(1 - spread_S, 0) / count_S)
    tau = tau_S[np.sum(tau_S <= sorted_S) - 1]
    return np.maximum(halves_S - tau, 0) ** 2


@pytest.mark.parametrize('size', [1, 7, 4096])
def test_weights_are_those_of_bisection_and_of_sorting(size: int) -> None:
    logits_RS = np.random.default_rng(0).normal(size=(3, size)).astype(np.float32)
    logits_RS *= np.float32([[0.01], [1.0], [10.0]])
    weights_RS, log_sum_R, entropy_R = run(logits_RS, jnp.ones((3, size), bool))
    wanted_RS = np.stack([by_bisection(row) for row in logits_RS])
    np.testing.assert_allclose(np.stack([*map(by_sorting, logits_RS)]), wanted_RS, atol=1e-12)
    np.testing.assert_allclose(weights_RS, wanted_RS, rtol=0, atol=2e-6)
    np.testing.assert_allclose(np.sum(weights_RS, axis=-1), 1, rtol=2e-6)
    np.testing.assert_array_equal(log_sum_R, 0)
    logs_RS = np.log(np.where(wanted_RS > 0, wanted_RS, 1))
    np.testing.assert_allclose(entropy_R, -np.sum(wanted_RS * logs_RS, axis=-1), atol=1e-5)


def test_far_logits_have_no_weight_and_equal_ones_the_same() -> None:
    logits_S = jnp.float32([1e4, 1e4, 1e4 - 2.5, -1e4])
    weights_S, _, entropy = entmax(logits_S, jnp.ones(4, bool))
    np.testing.assert_allclose(weights_S, [0.5, 0.5, 0, 0], atol=1e-6)
    np.testing.assert_allclose(entropy, np.log(2), atol=1e-6)
    assert weights_S[2] == 0


def test_a_row_is_the_same_whatever_other_rows_are() -> None:
    """Bit for bit: steps that others still need do not move it."""
    rows_RS = np.random.default_rng(1).normal(size=(40, 50)).astype(np.float32)
    rows_RS *= np.geomspace(0.01, 30, 40, dtype=np.float32)[:, None]
    seen_RS = jnp.ones((40, 50), bool)
    together_RS = run(rows_RS, seen_RS)[0]
    alone = [run(row[None], seen_RS[:1])[0][0] for row in rows_RS]
    np.testing.assert_array_equal(together_RS, np.stack(alone))
