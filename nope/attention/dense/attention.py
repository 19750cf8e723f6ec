"""Attention with dense weights, by the name of their rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.api import check
from nope.attention.bias import Bias
from nope.attention.dense.entmax import entmax
from nope.attention.dense.stick_breaking import stick_breaking
from nope.attention.dropout import Dropout
from nope.attention.reference import Rule, attend_by_rule
from nope.attention.structure import AttentionOutput, Mask


class _Weights(NamedTuple):
    """Rule of the weights; whether a query sees its own key; whether it needs a causal order."""

    rule: Rule
    own_key: bool
    causal: bool


# Of a block, whose weights stay in the cache of a core. Each block is a part of the program.
QUERIES, BLOCKS = 128, 16

WEIGHTS: Mapping[str, _Weights] = {
    'entmax': _Weights(entmax, own_key=True, causal=False),
    # Tan et al. leave the current token out of its own row.
    'stick_breaking': _Weights(stick_breaking, own_key=False, causal=True),
}


def check_order(weights: str, mask: Mask) -> None:
    """ValueError for weights, by a name of `WEIGHTS`, that the mask gives no order."""
    if WEIGHTS[weights].causal and not mask.causal:
        raise ValueError(f'weights={weights!r} needs mask.causal=True: later keys come first')


def dense_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    weights: str,
    mask: Mask = Mask(),  # noqa: B008 (frozen, holds no arrays)
    bias: Bias | None = None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool = False,
    max_logit: bool = False,
    dropout: Dropout | None = None,
) -> AttentionOutput:
    """Attention by entmax-1.5 or stick-breaking weights, float32: those of a block of queries at a
    time, and for gradients of all.

    Arguments as `nope.attention.attention`, logits too: there is no scale here. `weights` is a name
    of `WEIGHTS`: 'entmax' (sparse, sums to 1) or 'stick_breaking' (sums to at most 1; a query sees
    earlier keys alone, so that the first one's output is 0). Of a row's weights `lse` is the
    logarithm of their sum, float32 [B, N, T]: 0 for entmax, minus infinity for a row that sees no
    key. The entropy is that of the weights in nats, what they leave of 1 counted as one outcome.
    Differentiable as `nope.attention.attention` is. `dropout` is of the weights, with keys [B, N]
    (`nope.attention.dropout`).

    ValueError for arguments that do not fit together, an unknown rule, and stick-breaking weights
    without a causal mask.
    """
    check(q_BTNH, k_BSKH, v_BSKH, mask, bias, key_bias_BNS)
    if weights not in WEIGHTS:
        accepted = ', '.join(map(repr, WEIGHTS))
        raise ValueError(f'weights={weights!r} is unknown; accepted: {accepted}')
    check_order(weights, mask)
    kind = WEIGHTS[weights]
    T, S = q_BTNH.shape[1], k_BSKH.shape[1]

    def attend(queries: slice, keys: slice, mask: Mask) -> AttentionOutput:
        return attend_by_rule(
            kind.rule,
            q_BTNH[:, queries],
            k_BSKH[:, keys],
            v_BSKH[:, keys],
            mask=mask,
            bias=bias,
            key_bias_BNS=None if key_bias_BNS is None else key_bias_BNS[..., keys],
            entropy=entropy,
            max_logit=max_logit,
            own_key=kind.own_key,
            dropout=dropout,
        )

    size = max(QUERIES, -(-T // BLOCKS))
    if size >= T or mask.offset is not None or dropout is not None:
        return attend(slice(T), slice(S), mask)
    parts = []
    for first in range(0, T, size):
        queries, keys = slice(first, first + size), slice(first + size if mask.causal else S)
        ids_BT, ids_BS = (
            None if ids is None else ids[:, part]
            for ids, part in ((mask.q_segments_BT, queries), (mask.kv_segments_BS, keys))
        )
        part = Mask(mask.causal, ids_BT, ids_BS, mask.window, first)
        parts.append(attend(queries, keys, part))
    # Outputs are [B, T, N, H], statistics [B, N, T].
    return jax.tree.map(lambda *x: jnp.concatenate(x, 1 if x[0].ndim == 4 else 2), *parts)
