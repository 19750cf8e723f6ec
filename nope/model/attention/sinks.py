"""Attention sinks: one more logit in every row's softmax, to whose key there is no value."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.attention import AttentionOutput
from nope.model.attention.by_head import Attended
from nope.model.shape import AttentionShape


def add_sinks(seen: Attended, sinks_N: jax.Array, queries_R: jax.Array | None = None) -> Attended:
    """Attention whose head n may put weight on a sink of logit s_n, from the attention without.

    With lse' = ln(e^lse + e^s), the keys keep the share w = e^(lse - lse') of the weight. Outputs
    and weights are w times as large. The entropy is that of the softmax with the sink in it, w (H -
    ln w) - (1 - w) ln(1 - w). These are GPT-OSS's sinks (its code puts a column of s_n beside the
    logits and drops it after the softmax), and softmax-off-by-one at s_n = 0. Rows that see no key
    put all weight on the sink: output and entropy are 0. Lambda multiplies the logits of keys, not
    the sink's, and the largest logit is the largest of a key.

    sinks_N: float32, [N]. queries_R: those whose weights `seen` has, if it has any.
    """
    output, shape, weights_BNRS = seen
    seen_BNT = output.lse > -jnp.inf
    above_BNT = jnp.where(seen_BNT, output.lse, 0.0) - sinks_N[:, None]
    kept_BNT = jnp.where(seen_BNT, jax.nn.sigmoid(above_BNT), 0.0)
    lse_BNT = jnp.where(seen_BNT, sinks_N[:, None] + jax.nn.softplus(above_BNT), sinks_N[:, None])
    entropy_BNT = None
    if output.entropy is not None:
        # -ln w and -ln(1 - w), exact where either is near 0.
        of_keys_BNT = kept_BNT * (output.entropy + jax.nn.softplus(-above_BNT))
        of_sink_BNT = (1 - kept_BNT) * jax.nn.softplus(above_BNT)
        entropy_BNT = jnp.where(seen_BNT, of_keys_BNT + of_sink_BNT, 0.0)
    out_BTNH = output.out.astype(jnp.float32) * kept_BNT.swapaxes(1, 2)[..., None]
    out_BTNH = out_BTNH.astype(output.out.dtype)
    if shape is not None:
        shape = AttentionShape(*(kept_BNT * part for part in shape))
    if queries_R is not None and weights_BNRS is not None:
        weights_BNRS *= jnp.take(kept_BNT, queries_R, axis=2)[..., None]
    output = AttentionOutput(out_BTNH, lse_BNT, entropy_BNT, output.max_logit)
    return Attended(output, shape, weights_BNRS)
