"""Stick-breaking attention weights (Tan et al., 2024, arXiv:2410.17980)."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def stick_breaking(logits: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(weights, log of their sum, entropy in nats) over the last axis of [..., S], where `seen`.

        a_j = sigmoid(s_j) prod_{k > j} (1 - sigmoid(s_k)), over keys k that are seen

    From the latest key backwards each takes its share of what later ones left. What remains of 1,
    r = prod_k (1 - sigmoid(s_k)), goes to no key, and the weights sum to 1 - r. The entropy counts
    it as one more outcome, -sum_j a_j ln a_j - r ln r, as that of a softmax with a sink does. A row
    that sees nothing has weights 0, the log minus infinity and entropy 0. Products are sums of
    logarithms; float32, or float64 for such logits.
    """
    log_taken = jax.nn.log_sigmoid(logits)
    log_left = jnp.where(seen, jax.nn.log_sigmoid(-logits), 0.0)
    later = jnp.concatenate([log_left[..., 1:], jnp.zeros_like(log_left[..., :1])], axis=-1)
    left_by_later = jax.lax.cumsum(later, axis=later.ndim - 1, reverse=True)
    log_weights = jnp.where(seen, log_taken + left_by_later, 0.0)
    weights = jnp.where(seen, jnp.exp(log_weights), 0.0)

    log_rest = left_by_later[..., 0] + log_left[..., 0]
    entropy = -jnp.sum(weights * log_weights, axis=-1) - jnp.exp(log_rest) * log_rest
    any_seen = jnp.any(seen, axis=-1)
    # Below the least number the logarithm is that number's, whose gradient is 0 and not NaN.
    least = jnp.finfo(logits.dtype).tiny
    log_sum = jnp.log(jnp.maximum(-jnp.expm1(log_rest), least))
    return weights, jnp.where(any_seen, log_sum, -jnp.inf), entropy
