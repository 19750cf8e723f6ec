"""Reference attention by definition, in float32 (float64 for such inputs) and O(T S) memory.

Every other implementation is tested against this one, in values and in gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from nope.attention.bias import Bias, as_array, factors_as_array
from nope.attention.dropout import Dropout, dropped
from nope.attention.structure import AttentionOutput, Mask

# (weights [..., S], log-sum-exp [...], entropy [...]) of logits and of what is seen, both [..., S].
Rule = Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]


def reference_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool,
    max_logit: bool = False,
    dropout: Dropout | None = None,
) -> AttentionOutput:
    """softmax(q k^T) v with its log-sum-exp and entropy; see `nope.attention.api.attention`.

    Query head n reads key/value head n // G, G = N / K. dropout: as `attend_by_rule` takes it.
    """
    return attend_by_rule(
        softmax, q_BTNH, k_BSKH, v_BSKH,
        mask=mask, bias=bias, key_bias_BNS=key_bias_BNS, entropy=entropy, max_logit=max_logit,
        dropout=dropout,
    )  # fmt: skip


def attend_by_rule(
    rule: Rule,
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None,
    entropy: bool,
    max_logit: bool = False,
    own_key: bool = True,
    dropout: Dropout | None = None,
) -> AttentionOutput:
    """Attention whose weights are a rule of the dense logits.

    own_key: whether a query may see the key at its own position, where the mask shows it. dropout:
    of the weights that values are summed by, with keys [B, N]; lse and entropy are those without.
    """
    B, T, N, H = q_BTNH.shape
    S, K = k_BSKH.shape[1:3]
    precise = jnp.float64 if q_BTNH.dtype == jnp.float64 else jnp.float32
    q_BTKGH = q_BTNH.astype(precise).reshape(B, T, K, N // K, H)
    k_BSKH, v_BSKH = k_BSKH.astype(precise), v_BSKH.astype(precise)
    exact = jax.lax.Precision.HIGHEST

    logits_BKGTS = jnp.einsum('BTKGH,BSKH->BKGTS', q_BTKGH, k_BSKH, precision=exact)
    if bias is not None:
        factors_NTS = factors_as_array(bias, T, S, mask.offset)
        if factors_NTS is not None:
            logits_BKGTS *= factors_NTS.reshape(K, N // K, T, S).astype(precise)
        bias_NTS = as_array(bias, T, S, mask.offset)
        logits_BKGTS += bias_NTS.reshape(K, N // K, T, S).astype(precise)
    if key_bias_BNS is not None:
        logits_BKGTS += key_bias_BNS.reshape(B, K, N // K, 1, S).astype(precise)
    seen_BTS = mask.as_array(B, T, S)
    if not own_key:
        own_T = jnp.arange(T) + (0 if mask.offset is None else mask.offset)
        seen_BTS &= own_T[:, None] != jnp.arange(S)
    weights_BKGTS, lse_BKGT, entropy_BKGT = rule(logits_BKGTS, seen_BTS[:, None, None])

    if dropout is not None:
        keys_BKG = dropout.keys.reshape(B, K, N // K)
        weights_BKGTS = dropped(dropout.rate, weights_BKGTS, keys_BKG)
    max_BKGT = largest(logits_BKGTS, seen_BTS[:, None, None]) if max_logit else None
    out_BTKGH = jnp.einsum('BKGTS,BSKH->BTKGH', weights_BKGTS, v_BSKH, precision=exact)
    return AttentionOutput(
        out=out_BTKGH.reshape(B, T, N, H).astype(q_BTNH.dtype),
        lse=lse_BKGT.reshape(B, N, T),
        entropy=entropy_BKGT.reshape(B, N, T) if entropy else None,
        max_logit=None if max_BKGT is None else max_BKGT.reshape(B, N, T),
    )


def largest(logits: jax.Array, seen: jax.Array) -> jax.Array:
    """The largest of [..., S] where `seen` is true, a constant. It is -inf where nothing is."""
    return jax.lax.stop_gradient(jnp.max(logits, axis=-1, where=seen, initial=-jnp.inf))


def softmax(logits: jax.Array, seen: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(weights, log-sum-exp, entropy) over the last axis of [..., S], where `seen`.

    A row that sees nothing has weights 0, log-sum-exp -inf and entropy 0, and no NaN in gradients.
    """
    any_1 = jnp.any(seen, axis=-1, keepdims=True)
    max_1 = jnp.max(logits, axis=-1, keepdims=True, where=seen, initial=-jnp.inf)
    max_1 = jax.lax.stop_gradient(jnp.where(any_1, max_1, 0.0))
    shifted = jnp.where(seen, logits - max_1, 0.0)
    unnormalized = jnp.where(seen, jnp.exp(shifted), 0.0)
    # Rows that see nothing divide by 1 instead of 0, so that their gradient is 0 and not NaN.
    norm_1 = jnp.sum(unnormalized, axis=-1, keepdims=True) + jnp.where(any_1, 0, 1)
    weights = unnormalized / norm_1
    log_norm_1 = jnp.log(norm_1)
    lse_1 = jnp.where(any_1, max_1 + log_norm_1, -jnp.inf)
    # ln a = shifted - ln norm, and the weights sum to one.
    entropy = log_norm_1[..., 0] - jnp.sum(weights * shifted, axis=-1)
    return weights, lse_1[..., 0], entropy
