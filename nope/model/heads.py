"""Attention of a layer's heads: all under one mask, or the local ones under their own window."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from nope.attention import AttentionOutput, Mask
from nope.model.config import LayerKind
from nope.positions import Position

# q, k and v, then by name mask, bias and key_bias_BNS.
Attend = Callable[..., AttentionOutput]


def attend_by_kind(
    attend: Attend,
    kind: LayerKind,
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    mask: Mask,
    table: jax.Array | None,
    forgotten_BSN: jax.Array | None = None,
) -> AttentionOutput:
    """Attention as layers of that kind do it.

    q_BTNH, k_BSKH: with positions, the queries scaled. mask: without the layer's window. table: the
    position encoding's learned array, if it has one. forgotten_BSN: the sums of the logarithms of
    the model's forget gates up to every key, float32 (`nope.model.gates`).
    """
    position = kind.position
    gate = position.gate(q_BTNH.shape[2])
    key_bias_BNS = None
    if gate is not None and forgotten_BSN is not None:
        # c_i - c_j up to c_i, which all logits of a query share and the softmax removes.
        key_bias_BNS = -forgotten_BSN.swapaxes(1, 2)
    mask = dataclasses.replace(mask, window=kind.window)
    bias = position.bias(q_BTNH.shape[2], table)
    if position.local_window is None:
        if key_bias_BNS is not None:
            ungated = q_BTNH.shape[2] - key_bias_BNS.shape[1]
            key_bias_BNS = jnp.pad(key_bias_BNS, [(0, 0), (0, ungated), (0, 0)])
        return attend(q_BTNH, k_BSKH, v_BSKH, mask=mask, bias=bias, key_bias_BNS=key_bias_BNS)
    N, K = (position.local_heads(heads) for heads in (q_BTNH.shape[2], k_BSKH.shape[2]))
    near = dataclasses.replace(mask, window=_nearer(position, kind))
    local = attend(
        *(q_BTNH[:, :, :N], k_BSKH[:, :, :K], v_BSKH[:, :, :K]),
        mask=near,
        bias=jax.tree.map(lambda parameters: parameters[..., :N], bias),
        key_bias_BNS=key_bias_BNS,
    )
    others = attend(q_BTNH[:, :, N:], k_BSKH[:, :, K:], v_BSKH[:, :, K:], mask=mask, bias=None)
    entropy = None
    if local.entropy is not None and others.entropy is not None:
        entropy = jnp.concatenate([local.entropy, others.entropy], axis=1)
    return AttentionOutput(
        jnp.concatenate([local.out, others.out], axis=2),
        jnp.concatenate([local.lse, others.lse], axis=1),
        entropy,
    )


def _nearer(position: Position, kind: LayerKind) -> int:
    """The window of the local heads: theirs or the layer's, whichever is smaller."""
    window = position.local_window
    assert window is not None
    return window if kind.window is None else min(window, kind.window)
