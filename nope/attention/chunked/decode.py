"""Decoding attention: a few queries over many cached keys, read once and in their own layout.

Keys come as [S, K, H], and a product per head would have them moved to [K, S, H] first: for one
query, all of the work. Here the queries of all heads are the rows of one matrix over K H columns,
each with zeros for the other heads' coordinates, and the keys are the matrix that they are in
memory. It multiplies K times as much and moves nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.attention.bias import Bias, as_array, factors_as_array
from nope.attention.reference import largest, softmax
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime.products import exact_einsum

# Rows up to which it pays. Two cores, float32, 16,384 keys, in milliseconds here and in blocks:
# 8 heads on 8, one query: 6 and 26; 32 heads on 4, one query: 7 and 15, four queries: 28 and 26.
MOST_ROWS = 32


def decode_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool,
    max_logit: bool = False,
) -> AttentionOutput:
    """softmax(q k^T) v with its lse and entropy; see `nope.attention.api.attention`.

    O(T N S) memory: for T N up to `MOST_ROWS`.
    """
    B, T, N, H = q_BTNH.shape
    S, K = k_BSKH.shape[1:3]
    dtype = q_BTNH.dtype
    if dtype == jnp.float16:
        # Float16 ends at 65,504, which gradients of weights may pass where those of q do not.
        q_BTNH, k_BSKH, v_BSKH = (x.astype(jnp.float32) for x in (q_BTNH, k_BSKH, v_BSKH))
    own_NK1 = jnp.repeat(jnp.eye(K, dtype=q_BTNH.dtype), N // K, axis=0)[..., None]
    wide_BRC = (q_BTNH[..., None, :] * own_NK1).reshape(B, T * N, K * H)
    logits_BRS = exact_einsum('BRC,BSC->BRS', wide_BRC, k_BSKH.reshape(B, S, K * H))
    logits_BTNS = logits_BRS.reshape(B, T, N, S)
    if bias is not None:
        factors_NTS = factors_as_array(bias, T, S, mask.offset)
        if factors_NTS is not None:
            logits_BTNS *= factors_NTS.swapaxes(0, 1).astype(jnp.float32)
        bias_NTS = as_array(bias, T, S, mask.offset)
        logits_BTNS += bias_NTS.swapaxes(0, 1).astype(jnp.float32)
    if key_bias_BNS is not None:
        logits_BTNS += key_bias_BNS[:, None]
    seen_BTNS = mask.as_array(B, T, S)[:, :, None]
    weights_BTNS, lse_BTN, entropy_BTN = softmax(logits_BTNS, seen_BTNS)
    weights_BRS = weights_BTNS.reshape(B, T * N, S).astype(v_BSKH.dtype)
    mixed_BRC = exact_einsum('BRS,BSC->BRC', weights_BRS, v_BSKH.reshape(B, S, K * H))
    out_BTNH = jnp.sum(mixed_BRC.reshape(B, T, N, K, H) * own_NK1.astype(jnp.float32), axis=3)
    return AttentionOutput(
        out=out_BTNH.astype(dtype),
        lse=lse_BTN.swapaxes(1, 2),
        entropy=entropy_BTN.swapaxes(1, 2) if entropy else None,
        max_logit=largest(logits_BTNS, seen_BTNS).swapaxes(1, 2) if max_logit else None,
    )
