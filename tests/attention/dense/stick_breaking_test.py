"""Stick-breaking weights: products over later keys, what remains, and their gradients."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention.dense.stick_breaking import stick_breaking

run = jax.jit(stick_breaking)


def by_product(logits_S: np.ndarray, seen_S: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights from the latest key backwards, and what remains of 1, in float64."""
    left, weights_S = 1.0, np.zeros(len(logits_S))
    for j in reversed(np.flatnonzero(seen_S)):
        share = 1 / (1 + np.exp(-float(logits_S[j])))
        weights_S[j] = share * left
        left *= 1 - share
    return weights_S, left


def test_each_key_takes_its_share_of_what_later_ones_left() -> None:
    rng = np.random.default_rng(0)
    logits_RS = (3 * rng.normal(size=(6, 40))).astype(np.float32)
    seen_RS = rng.random((6, 40)) < 0.7
    weights_RS, log_sum_R, entropy_R = run(logits_RS, seen_RS)
    for row, (logits_S, seen_S) in enumerate(zip(logits_RS, seen_RS, strict=True)):
        wanted_S, rest = by_product(logits_S, seen_S)
        np.testing.assert_allclose(weights_RS[row], wanted_S, atol=2e-6)
        np.testing.assert_allclose(log_sum_R[row], np.log(wanted_S.sum()), atol=2e-6)
        outcomes = np.append(wanted_S[seen_S], rest)
        np.testing.assert_allclose(entropy_R[row], -np.sum(outcomes * np.log(outcomes)), atol=1e-5)


def test_extreme_logits_give_all_to_one_key_or_to_none() -> None:
    logits_RS = jnp.float32([[1e4, 1e4, -1e4, -1e4], [-1e4] * 4])
    weights_RS, log_sum_R, entropy_R = run(logits_RS, jnp.ones((2, 4), bool))
    np.testing.assert_array_equal(weights_RS, [[0, 1, 0, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(entropy_R, 0)
    assert log_sum_R[0] == 0 and log_sum_R[1] < -80


def test_weights_of_a_long_row_are_those_of_its_latest_keys() -> None:
    """Keys before them are seen and change nothing; sums of 4,096 logarithms lose nothing."""
    logits_S = np.random.default_rng(1).normal(size=4096).astype(np.float32)
    weights_S = run(logits_S, jnp.ones(4096, bool))[0]
    latest_S = run(logits_S[-50:], jnp.ones(50, bool))[0]
    np.testing.assert_allclose(weights_S[-50:], latest_S, atol=2e-6)
    wanted_S, _ = by_product(logits_S, np.ones(4096, bool))
    np.testing.assert_allclose(weights_S, wanted_S, atol=2e-6)
