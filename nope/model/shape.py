"""Distribution of attention weights over the keys: first token, latest tokens, size of the output.

Nothing here holds T x T numbers: a weight is exp(logit - lse), and a sum of weights over a window
is exp(lse of the window - lse).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention import AttentionOutput, Bias, Mask

# q, k and v, then by name mask, bias and key_bias_BNS.
Attend = Callable[..., AttentionOutput]


@dataclasses.dataclass(frozen=True)
class AskedStats:
    """Statistics of attention that a call of the model returns.

    span: latest keys whose weight the shape of attention sums up; None for no shape.
    """

    entropy: bool = False
    span: int | None = None
    max_logit: bool = False


class AttentionShape(NamedTuple):
    """Weight on the first and the latest keys, and the outputs' norm, float32 [B, N, T] each.

    first: the weight on the first token. local: the sum of weights on the latest keys, the query's
    own included. norm: the Euclidean norm of a head's output, in front of the output projection.
    """

    first: jax.Array
    local: jax.Array
    norm: jax.Array


def check_queries(queries_R: jax.Array, tokens: int) -> None:
    """ValueError for queries that there are not; traced ones pass, whose rows are then without
    meaning."""
    if isinstance(queries_R, jax.core.Tracer):
        return
    for index in np.asarray(queries_R).tolist():
        if not 0 <= index < tokens:
            raise ValueError(f'queries_R has {index}; accepted: 0 to {tokens - 1}')


class LayerStats(NamedTuple):
    """Statistics of attention, float32, None unless asked for. Entropy (nats) and largest logits
    are [B, N, T], weights of chosen queries [B, N, R, S]. All layers have a leading axis L."""

    entropy: jax.Array | None
    shape: AttentionShape | None = None
    max_logit: jax.Array | None = None
    rows: jax.Array | None = None


def shape_of(
    attend: Attend,
    seen: AttentionOutput,
    span: int,
    q_BTNH: jax.Array,
    k_BTKH: jax.Array,
    v_BTKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None,
) -> AttentionShape:
    """The shape of an attention call, of which `seen` is the output, over whole sequences.

    span: keys that count as the latest.
    """
    local = seen
    if mask.window is None or mask.window > span:
        near = dataclasses.replace(mask, window=span)
        local = attend(q_BTNH, k_BTKH, v_BTKH, mask=near, bias=bias, key_bias_BNS=key_bias_BNS)
    B, T, N, H = q_BTNH.shape
    q_BTKGH = q_BTNH.astype(jnp.float32).reshape(B, T, k_BTKH.shape[2], -1, H)
    first_BKH = k_BTKH[:, 0].astype(jnp.float32)
    logits_BNT = jnp.einsum(
        'BTKGH,BKH->BKGT', q_BTKGH, first_BKH, precision=jax.lax.Precision.HIGHEST
    ).reshape(B, N, T)
    if bias is not None:
        distance_T = jnp.arange(T, dtype=jnp.int32)
        factors_NT = bias.factors_by_distance(distance_T)
        if factors_NT is not None:
            logits_BNT *= factors_NT.astype(jnp.float32)
        logits_BNT += bias.by_distance(distance_T).astype(jnp.float32)
    if key_bias_BNS is not None:
        logits_BNT += key_bias_BNS[..., :1]
    first_BNT = jnp.exp(logits_BNT - seen.lse)
    if mask.window is not None:
        first_BNT = jnp.where(jnp.arange(T) < mask.window, first_BNT, 0.0)
    if mask.q_segments_BT is not None and mask.kv_segments_BS is not None:
        same_BT = mask.q_segments_BT == mask.kv_segments_BS[:, :1]
        first_BNT = jnp.where(same_BT[:, None], first_BNT, 0.0)
    norm_BTN = jnp.linalg.norm(seen.out.astype(jnp.float32), axis=-1)
    return AttentionShape(first_BNT, jnp.exp(local.lse - seen.lse), norm_BTN.swapaxes(1, 2))
