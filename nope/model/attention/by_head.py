"""Attention of a layer's heads: all under one mask, or the local ones under their own window."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.attention import AttentionOutput, Mask
from nope.attention.dropout import Dropout
from nope.attention.rows import attention_rows
from nope.model.kinds import LayerKind
from nope.model.shape import Attend, AttentionShape, shape_of


class Attended(NamedTuple):
    """Output of a layer's heads; the shape of their attention, and the weights of chosen queries
    [B, N, R, S], where these were asked for."""

    output: AttentionOutput
    shape: AttentionShape | None = None
    rows: jax.Array | None = None


@dataclasses.dataclass(frozen=True)
class Way:
    """Attention implementation of a layer's heads, their weights' rule, and statistics asked for.

    attend: the attention. weights: the name of its rule. span: as `shape_of` takes it; None for no
    shape. queries_R: those whose weights are returned; None for none. dropout: of the attention
    weights, with keys [B, N]. Shape and rows are without it, the norm of the output with it.
    """

    attend: Attend
    weights: str = 'softmax'
    span: int | None = None
    queries_R: jax.Array | None = None
    dropout: Dropout | None = None

    def of_heads(self, heads: slice) -> Way:
        """The same for some of the heads."""
        if self.dropout is None:
            return self
        keys = self.dropout.keys[:, heads]
        return dataclasses.replace(self, dropout=self.dropout._replace(keys=keys))


def attend_by_kind(
    way: Way,
    kind: LayerKind,
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    mask: Mask,
    table: jax.Array | None,
    forgotten_BSN: jax.Array | None = None,
) -> Attended:
    """Attention as layers of that kind do it.

    q_BTNH, k_BSKH: with positions, the queries scaled. mask: without the layer's window. table: the
    position encoding's learned array, if it has one. forgotten_BSN: the sums of the logarithms of
    the model's forget gates up to every key, float32 (`forget_gates.py`).

    The largest logits of gated heads are those of q_i . k_j + c_i - c_j, with c the sums.
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
        return _attend(way, q_BTNH, k_BSKH, v_BSKH, mask=mask, bias=bias, key_bias_BNS=key_bias_BNS)
    N, K = (position.local_heads(heads) for heads in (q_BTNH.shape[2], k_BSKH.shape[2]))
    nearer = min(position.local_window, kind.window or position.local_window)
    local = _attend(
        way.of_heads(slice(None, N)),
        *(q_BTNH[:, :, :N], k_BSKH[:, :, :K], v_BSKH[:, :, :K]),
        mask=dataclasses.replace(mask, window=nearer),
        bias=jax.tree.map(lambda parameters: parameters[..., :N], bias),
        key_bias_BNS=key_bias_BNS,
    )
    others = _attend(
        way.of_heads(slice(N, None)),
        *(q_BTNH[:, :, N:], k_BSKH[:, :, K:], v_BSKH[:, :, K:]),
        mask=mask,
        bias=None,
        key_bias_BNS=None,
    )
    out = jnp.concatenate([local.output.out, others.output.out], axis=2)
    by_row = [
        (x.output.lse, x.output.entropy, x.output.max_logit, x.shape, x.rows)
        for x in (local, others)
    ]
    *stats, shape, rows = jax.tree.map(lambda *heads: jnp.concatenate(heads, axis=1), *by_row)
    return Attended(AttentionOutput(out, *stats), shape, rows)


def _attend(way: Way, *operands: jax.Array, **how: Any) -> Attended:
    dropping = {} if way.dropout is None else {'dropout': way.dropout}
    output = way.attend(*operands, **how, **dropping)
    bias_BNT = how['key_bias_BNS']
    if output.max_logit is not None and bias_BNT is not None:
        # The largest logits get c_i, which the key bias -c_j lacks. In fresh gates c falls by about
        # ln 2 a token. So the largest -c_j grows with the length.
        offset, T = how['mask'].offset, output.max_logit.shape[2]
        if offset is not None:
            bias_BNT = jax.lax.dynamic_slice_in_dim(bias_BNT, offset, T, axis=2)
        output = output._replace(max_logit=output.max_logit - jax.lax.stop_gradient(bias_BNT))
    attended = Attended(output)
    if way.span is not None:
        attended = attended._replace(
            shape=shape_of(way.attend, attended.output, way.span, *operands, **how)
        )
    if way.queries_R is not None:
        q_BTNH, k_BSKH, _ = operands
        q_BRNH = jnp.take(q_BTNH, way.queries_R, axis=1)
        found = attention_rows(q_BRNH, k_BSKH, way.queries_R, weights=way.weights, **how)
        attended = attended._replace(rows=found)
    return attended
