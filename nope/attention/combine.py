"""Attention over all keys from attention over parts of them.

The softmax over part p of the keys alone has the log-sum-exp l_p, the output o_p and the entropy
H_p. The softmax over all keys gives the parts the weights

    w_p = exp(l_p - l),   l = ln sum_p exp(l_p)

and a key of part p the weight w_p a, with a its weight inside the part. So

    o = sum_p w_p o_p
    H = -sum_p sum_j w_p a_j ln(w_p a_j) = sum_p w_p (H_p - ln w_p) = sum_p w_p (H_p + l - l_p):

the entropy of the parts plus that of the choice between them. Nothing but the three numbers of
each row is needed, in any order and in any grouping.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.attention.structure import AttentionOutput


def combine(first: AttentionOutput, second: AttentionOutput) -> AttentionOutput:
    """The attention over two disjoint sets of keys, from that over each.

    Shapes and dtypes as `AttentionOutput`; `out` is summed in float32 and returned in the dtype
    it has in `first`. A part in which a row sees nothing (lse -inf) does not count for that row.
    Differentiable in all arrays but the largest logits; the entropy, and these, are None where
    either has none.
    """
    peak_BNT = jax.lax.stop_gradient(jnp.maximum(first.lse, second.lse))
    seen_BNT = peak_BNT > -jnp.inf
    peak_BNT = jnp.where(seen_BNT, peak_BNT, 0.0)
    (safe_a, share_a), (safe_b, share_b) = (_share(x.lse, peak_BNT) for x in (first, second))
    total_BNT = jnp.where(seen_BNT, share_a + share_b, 1.0)
    log_BNT = jnp.log(total_BNT)
    lse_BNT = jnp.where(seen_BNT, peak_BNT + log_BNT, -jnp.inf)
    w_a, w_b = share_a / total_BNT, share_b / total_BNT
    out_BTNH = _rows(w_a) * first.out.astype(jnp.float32)
    out_BTNH += _rows(w_b) * second.out.astype(jnp.float32)
    entropy_BNT = None
    if first.entropy is not None and second.entropy is not None:
        whole_BNT = peak_BNT + log_BNT
        entropy_BNT = w_a * (first.entropy + jnp.where(w_a > 0, whole_BNT - safe_a, 0.0))
        entropy_BNT += w_b * (second.entropy + jnp.where(w_b > 0, whole_BNT - safe_b, 0.0))
    max_BNT = None
    if first.max_logit is not None and second.max_logit is not None:
        max_BNT = jax.lax.stop_gradient(jnp.maximum(first.max_logit, second.max_logit))
    return AttentionOutput(out_BTNH.astype(first.out.dtype), lse_BNT, entropy_BNT, max_BNT)


def _share(lse_BNT: jax.Array, peak_BNT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(lse with 0 for -inf, exp(lse - peak) with 0 for -inf), without NaN in the gradient."""
    finite_BNT = lse_BNT > -jnp.inf
    safe_BNT = jnp.where(finite_BNT, lse_BNT, 0.0)
    moved_BNT = jnp.where(finite_BNT, safe_BNT - peak_BNT, 0.0)
    return safe_BNT, jnp.where(finite_BNT, jnp.exp(moved_BNT), 0.0)


def _rows(weights_BNT: jax.Array) -> jax.Array:
    return weights_BNT.swapaxes(1, 2)[..., None]
