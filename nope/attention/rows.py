"""Rows of attention weights for chosen queries: O(R S) memory for R queries, never T x S."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.attention.api import check
from nope.attention.bias import Bias
from nope.attention.dense import WEIGHTS, check_order
from nope.attention.reference import Rule, softmax
from nope.attention.structure import Mask


def attention_rows(
    q_BRNH: jax.Array,
    k_BSKH: jax.Array,
    at_R: jax.Array,
    *,
    mask: Mask = Mask(),  # noqa: B008 (frozen, holds no arrays)
    bias: Bias | None = None,
    key_bias_BNS: jax.Array | None = None,
    weights: str = 'softmax',
) -> jax.Array:
    """Weights of the queries at chosen positions on all keys, float32 [B, N, R, S].

    `nope.attention.attention` and `dense_attention` sum values with these weights. A row without a
    visible key is 0.

    q_BRNH: the chosen queries alone, already scaled. k_BSKH: all keys; query head n reads key head
    n // (N / K). at_R: positions of the queries among the keys, int32, in any order. mask: as for
    the queries at 0 .. T-1, whose segment ids [B, T] are those of all of them; without an offset.
    bias, key_bias_BNS: as `attention` takes them. weights: 'softmax' or a name of `WEIGHTS`.

    ValueError for arguments that do not fit together, as `attention` and `dense_attention` raise
    it, for a mask with an offset, and for weights of another name.
    """
    _check(q_BRNH, k_BSKH, at_R, mask, bias, key_bias_BNS, weights)
    at_R = jnp.asarray(at_R).astype(jnp.int32)
    rule: Rule = softmax
    own_key = True
    if weights != 'softmax':
        rule, own_key = WEIGHTS[weights].rule, WEIGHTS[weights].own_key
    B, R, N, H = q_BRNH.shape
    S, K = k_BSKH.shape[1:3]
    logits_BKGRS = jnp.einsum(
        'BRKGH,BSKH->BKGRS',
        q_BRNH.astype(jnp.float32).reshape(B, R, K, N // K, H),
        k_BSKH.astype(jnp.float32),
        precision=jax.lax.Precision.HIGHEST,
    )
    logits_BNRS = logits_BKGRS.reshape(B, N, R, S)
    distance_RS = at_R[:, None] - jnp.arange(S, dtype=jnp.int32)
    if bias is not None:
        distance_D = distance_RS.reshape(-1)
        factors_ND = bias.factors_by_distance(distance_D)
        if factors_ND is not None:
            logits_BNRS *= factors_ND.reshape(N, R, S).astype(jnp.float32)
        bias_NRS = bias.by_distance(distance_D).reshape(N, R, S)
        logits_BNRS += bias_NRS.astype(jnp.float32)
    if key_bias_BNS is not None:
        logits_BNRS += key_bias_BNS[:, :, None]
    ids_BR = None if mask.q_segments_BT is None else jnp.take(mask.q_segments_BT, at_R, axis=1)
    seen_BRS = mask.visible(at_R, jnp.arange(S, dtype=jnp.int32), ids_BR, mask.kv_segments_BS)
    if seen_BRS is None:
        seen_BRS = jnp.ones((1, R, S), bool)
    if not own_key:
        seen_BRS &= distance_RS != 0
    return rule(logits_BNRS, seen_BRS[:, None])[0]


def _check(
    q_BRNH: jax.Array,
    k_BSKH: jax.Array,
    at_R: jax.Array,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None,
    weights: str,
) -> None:
    if mask.offset is not None:
        raise ValueError('mask.offset is given; at_R says where the queries are')
    ids_BT = mask.q_segments_BT
    queries = jnp.shape(k_BSKH)[1] if ids_BT is None else jnp.shape(ids_BT)[-1]
    check(q_BRNH, k_BSKH, k_BSKH, mask, bias, key_bias_BNS, queries)
    if jnp.shape(at_R) != q_BRNH.shape[1:2] or not jnp.issubdtype(at_R.dtype, jnp.integer):
        raise ValueError(
            f'at_R has shape {jnp.shape(at_R)} and dtype {at_R.dtype}, expected integers of shape '
            f'{q_BRNH.shape[1:2]}'
        )
    if weights == 'softmax':
        return
    if weights not in WEIGHTS:
        accepted = ', '.join(map(repr, ('softmax', *WEIGHTS)))
        raise ValueError(f'weights={weights!r} is unknown; accepted: {accepted}')
    check_order(weights, mask)
