"""Entmax with alpha = 1.5 (Peters et al., 2019, arXiv:1905.05702): sparse attention weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp

# Newton's method takes 4 to 6 steps; a row that rounding keeps from its end stops here.
MOST_STEPS = 50


def entmax(logits: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(weights, log of their sum, entropy in nats) over the last axis of [..., S], where `seen`.

        a_j = max(s_j / 2 - tau, 0)^2, with tau such that sum_j a_j = 1

    Far keys get the weight 0 and not a small one. The log of the sum is 0. A row that sees nothing
    has weights 0, the log minus infinity, and entropy 0, and no NaN in gradients. Logits beyond 2
    below the largest of a row have weight 0. Float64 logits give float64, others float32.
    """
    weights = _entmax(logits, seen)
    any_seen = jnp.any(seen, axis=-1)
    log_sum = jnp.broadcast_to(jnp.where(any_seen, 0.0, -jnp.inf), weights.shape[:-1])
    logs = jnp.log(jnp.where(weights > 0, weights, 1.0))
    return weights, log_sum.astype(weights.dtype), -jnp.sum(weights * logs, axis=-1)


@jax.custom_vjp
def _entmax(logits: jax.Array, seen: jax.Array) -> jax.Array:
    any_1 = jnp.any(seen, axis=-1, keepdims=True)
    max_1 = jnp.max(logits, axis=-1, keepdims=True, where=seen, initial=-jnp.inf)
    max_1 = jnp.where(any_1, max_1, 0.0)
    # tau is between -1 and 0: everything from -1 down has no weight.
    halves = jnp.where(seen, jnp.maximum((logits - max_1) / 2, -2.0), -2.0)
    weights = jnp.square(jnp.maximum(halves - _threshold(halves), 0.0))
    sum_1 = jnp.sum(weights, axis=-1, keepdims=True)
    return weights / jnp.where(sum_1 > 0, sum_1, 1.0)  # 1 but for rounding


def _threshold(halves: jax.Array) -> jax.Array:
    """tau, [..., 1], of rows whose largest entry is 0; any number for rows without.

    Newton's method on n(tau) = ||max(z - tau, 0)|| - 1 starts at tau = -1. n is convex and falls:
    steps from the left never pass its zero. It is nearly straight: few steps are needed. Sorting
    finds the same number in 20 times the time. A row stops by itself: no other one changes it.
    """
    slack = 4 * jnp.finfo(halves.dtype).eps

    def step(at: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        tau_1, _, count = at
        above = jnp.maximum(halves - tau_1, 0.0)
        norm_1 = jnp.sqrt(jnp.sum(jnp.square(above), axis=-1, keepdims=True))
        goes_on_1 = norm_1 - 1 > slack
        slope_1 = jnp.where(goes_on_1, jnp.sum(above, axis=-1, keepdims=True), 1.0)
        moved_1 = tau_1 + (norm_1 - 1) * norm_1 / slope_1
        return jnp.where(goes_on_1, moved_1, tau_1), jnp.any(goes_on_1), count + 1

    start_1 = jnp.full_like(halves[..., :1], -1.0)
    found_1, _, _ = jax.lax.while_loop(
        lambda at: at[1] & (at[2] < MOST_STEPS), step, (start_1, jnp.bool(True), jnp.int32(0))
    )
    return found_1


def _forward(logits: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array]:
    weights = _entmax(logits, seen)
    return weights, weights


def _backward(weights: jax.Array, d_weights: jax.Array) -> tuple[jax.Array, None]:
    """ds = r (da - sum_j r_j da_j / sum_j r_j) with r = sqrt(a)."""
    roots = jnp.sqrt(weights)
    sum_1 = jnp.sum(roots, axis=-1, keepdims=True)
    mean_1 = jnp.sum(roots * d_weights, axis=-1, keepdims=True) / jnp.where(sum_1 > 0, sum_1, 1.0)
    return roots * (d_weights - mean_1), None


_entmax.defvjp(_forward, _backward)
