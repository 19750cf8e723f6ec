"""Attention in memory linear in length on any backend, forward and backward.

Queries and keys are cut into blocks. A scan goes over the query blocks; for each, the one key
block that the mask cuts through (the diagonal of a causal mask, else the end of the keys) comes
first, and an online softmax joins the blocks before it, which need no mask. Blocks above the
diagonal are never visited. A sequence of one block runs without any loop. Logits exist for one
pair of blocks at a time, and again in the backward pass.

With s the logits, P the weights, H the entropy and z = s - lse = ln P, a row has

    ds_j = P_j (dP_j - sum_k P_k dP_k)    from out = sum_j P_j v_j, where dP_j = dout . v_j
                                          and sum_k P_k dP_k = dout . out
         + dlse P_j                       from lse = ln sum_j exp s_j
         - dH P_j (z_j + H)               from H = -sum_j P_j z_j

that is, ds = P (dP - c - dH z) with c = dout . out - dlse + dH H. The gradient through lse
costs nothing, the one through the entropy a multiplication per logit, and neither needs more
saved than out, lse and H. This is FlashAttention-2 (Dao, 2023, arXiv:2307.08691) with one more
running sum, e = sum_j exp(s_j - m) (s_j - m), which gives H = ln l - e / l.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

from nope.attention import layout
from nope.attention.layout import Plan
from nope.attention.structure import AttentionOutput, Mask

# Finite stand-ins for -inf: their sums and products are numbers, so that a row or a block that
# sees nothing makes no NaN. The running maximum starts above hidden logits, which makes
# exp(hidden - maximum) exactly 0 even in a row that sees nothing.
_HIDDEN = -1e30
_FLOOR = -1e29


class _Segments(NamedTuple):
    """Segment ids by block: [C, B, q_block] and [D, B, k_block]."""

    q_CBT: jax.Array
    kv_DBS: jax.Array


class _Sums(NamedTuple):
    """Sums over some keys of one query block, relative to the exponential of `maximum`."""

    maximum_BKR: jax.Array
    norm_BKR: jax.Array
    entropy_BKR: jax.Array | None
    out_BKRH: jax.Array


class _Result(NamedTuple):
    """By query block: out in the input dtype, lse and entropy (or None) float32."""

    out_CBKRH: jax.Array
    lse_CBKR: jax.Array
    entropy_CBKR: jax.Array | None


class _Rows(NamedTuple):
    """What the backward pass reads by query: all blocks, or one without the axis C."""

    q_CBKRH: jax.Array
    d_out_CBKRH: jax.Array
    lse_CBKR: jax.Array
    c_CBKR: jax.Array
    d_entropy_CBKR: jax.Array | None


def chunked_attention(
    q_BTNH: jax.Array, k_BSKH: jax.Array, v_BSKH: jax.Array, *, mask: Mask, entropy: bool
) -> AttentionOutput:
    """softmax(q k^T) v with its lse and entropy; see `nope.attention.api.attention`."""
    B, T, N, _ = q_BTNH.shape
    S, K = k_BSKH.shape[1:3]
    plan = layout.make_plan(
        causal=mask.causal,
        entropy=entropy,
        rows=B * N,
        queries=T,
        keys=S,
        backend=jax.default_backend(),
    )
    segments = None
    if mask.q_segments_BT is not None and mask.kv_segments_BS is not None:
        segments = _Segments(
            layout.cut_blocks(mask.q_segments_BT, plan.q_block).swapaxes(0, 1),
            layout.cut_blocks(mask.kv_segments_BS, plan.k_block).swapaxes(0, 1),
        )
    result = _attend(
        plan,
        layout.split_q(q_BTNH, K, plan),
        layout.split_kv(k_BSKH, plan),
        layout.split_kv(v_BSKH, plan),
        segments,
    )
    lse_BNT = layout.join_rows(result.lse_CBKR, plan)
    entropy_BNT = None
    if result.entropy_CBKR is not None:
        entropy_BNT = layout.join_rows(result.entropy_CBKR, plan)
    return AttentionOutput(layout.join_q(result.out_CBKRH, plan), lse_BNT, entropy_BNT)


def _einsum(spec: str, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum(spec, x, y, preferred_element_type=jnp.float32)


def _at(array_D: jax.Array, j: jax.Array | int) -> jax.Array:
    return lax.dynamic_index_in_dim(array_D, j, keepdims=False)


def _add_at(array_D: jax.Array, j: jax.Array | int, value: jax.Array) -> jax.Array:
    return lax.dynamic_update_index_in_dim(array_D, _at(array_D, j) + value, j, axis=0)


def _logits(
    plan: Plan,
    q_BKRH: jax.Array,
    k_BKSH: jax.Array,
    segments: _Segments | None,
    i: jax.Array | int,
    j: jax.Array | int,
    *,
    cut: bool,
) -> jax.Array:
    """float32 logits [B, K, R, S] of query block i and key block j, hidden ones `_HIDDEN`.

    Only the block that is `cut` needs the causal rule or the end of the keys.
    """
    s_BKRS = _einsum('BKRH,BKSH->BKRS', q_BKRH, k_BKSH)
    groups = s_BKRS.shape[2] // plan.q_block
    q_index_R = i * plan.q_block + jnp.tile(jnp.arange(plan.q_block), groups)
    k_index_S = j * plan.k_block + jnp.arange(plan.k_block)
    q_ids_BR = kv_ids_BS = None
    if segments is not None:
        q_ids_BR = jnp.tile(_at(segments.q_CBT, i), (1, groups))
        kv_ids_BS = _at(segments.kv_DBS, j)
    seen_BRS = Mask(causal=plan.causal and cut).visible(q_index_R, k_index_S, q_ids_BR, kv_ids_BS)
    # Under a causal mask padded keys lie beyond the diagonal of every real query.
    if cut and not plan.causal and plan.keys % plan.k_block:
        inside_11S = (k_index_S < plan.keys)[None, None]
        seen_BRS = inside_11S if seen_BRS is None else seen_BRS & inside_11S
    if seen_BRS is None:
        return s_BKRS
    return jnp.where(seen_BRS[:, None], s_BKRS, _HIDDEN)


def _block_sums(plan: Plan, s_BKRS: jax.Array, v_BKSH: jax.Array, maximum_BKR: jax.Array) -> _Sums:
    z_BKRS = s_BKRS - maximum_BKR[..., None]
    p_BKRS = jnp.exp(z_BKRS)
    entropy_BKR = None
    if plan.entropy:
        # A dot and not sum(p * z), which XLA's CPU backend may run several times slower.
        entropy_BKR = jnp.einsum('BKRS,BKRS->BKR', p_BKRS, z_BKRS, precision='highest')
    return _Sums(
        maximum_BKR,
        jnp.sum(p_BKRS, axis=-1),
        entropy_BKR,
        _einsum('BKRS,BKSH->BKRH', p_BKRS.astype(v_BKSH.dtype), v_BKSH),
    )


def _join(plan: Plan, sums: _Sums, s_BKRS: jax.Array, v_BKSH: jax.Array) -> _Sums:
    """The online softmax: moves `sums` to the new maximum and adds one more key block."""
    maximum_BKR = jnp.maximum(sums.maximum_BKR, jnp.max(s_BKRS, axis=-1))
    block = _block_sums(plan, s_BKRS, v_BKSH, maximum_BKR)
    moved_BKR = sums.maximum_BKR - maximum_BKR
    decay_BKR = jnp.exp(moved_BKR)
    entropy_BKR = None
    if sums.entropy_BKR is not None and block.entropy_BKR is not None:
        # sum_j e^(s_j - m) (s_j - m) moves with both of its factors.
        moved_entropy_BKR = decay_BKR * (sums.entropy_BKR + moved_BKR * sums.norm_BKR)
        entropy_BKR = moved_entropy_BKR + block.entropy_BKR
    return _Sums(
        maximum_BKR,
        decay_BKR * sums.norm_BKR + block.norm_BKR,
        entropy_BKR,
        decay_BKR[..., None] * sums.out_BKRH + block.out_BKRH,
    )


def _finish(sums: _Sums, dtype: jax.typing.DTypeLike) -> _Result:
    seen_BKR = sums.norm_BKR > 0
    norm_BKR = jnp.where(seen_BKR, sums.norm_BKR, 1.0)
    log_norm_BKR = jnp.log(norm_BKR)
    entropy_BKR = None
    if sums.entropy_BKR is not None:
        entropy_BKR = log_norm_BKR - sums.entropy_BKR / norm_BKR
    return _Result(
        (sums.out_BKRH / norm_BKR[..., None]).astype(dtype),
        jnp.where(seen_BKR, sums.maximum_BKR + log_norm_BKR, -jnp.inf),
        entropy_BKR,
    )


def _forward(
    plan: Plan,
    q_CBKRH: jax.Array,
    k_DBKSH: jax.Array,
    v_DBKSH: jax.Array,
    segments: _Segments | None,
) -> _Result:
    def attend_block(carry, block):
        i, q_BKRH = block
        cut = plan.cut(i)
        s_BKRS = _logits(plan, q_BKRH, _at(k_DBKSH, cut), segments, i, cut, cut=True)
        maximum_BKR = jnp.maximum(jnp.max(s_BKRS, axis=-1), _FLOOR)
        sums = _block_sums(plan, s_BKRS, _at(v_DBKSH, cut), maximum_BKR)

        def step(j, sums):
            s_BKRS = _logits(plan, q_BKRH, _at(k_DBKSH, j), segments, i, j, cut=False)
            return _join(plan, sums, s_BKRS, _at(v_DBKSH, j))

        if plan.k_blocks > 1:
            sums = lax.fori_loop(0, cut, step, sums)
        return carry, _finish(sums, q_BKRH.dtype)

    return _scan_blocks(attend_block, None, q_CBKRH)[1]


def _scan_blocks(function: Any, carry: Any, arrays_C: Any) -> tuple[Any, Any]:
    """`lax.scan` over (i, arrays[i]); one block runs without the loop."""
    blocks = jax.tree.leaves(arrays_C)[0].shape[0]
    if blocks > 1:
        return lax.scan(function, carry, (jnp.arange(blocks), arrays_C))
    carry, result = function(carry, (0, jax.tree.map(lambda x: x[0], arrays_C)))
    return carry, jax.tree.map(lambda x: x[None], result)


def _pair_gradient(
    plan: Plan,
    rows: _Rows,
    k_BKSH: jax.Array,
    v_BKSH: jax.Array,
    segments: _Segments | None,
    i: jax.Array | int,
    j: jax.Array | int,
    *,
    cut: bool,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """float32 (dq [B, K, R, H], dk [B, K, H, S], dv [B, K, H, S]) from one pair of blocks."""
    q_BKRH, d_out_BKRH, lse_BKR, c_BKR, d_entropy_BKR = rows
    z_BKRS = _logits(plan, q_BKRH, k_BKSH, segments, i, j, cut=cut) - lse_BKR[..., None]
    p_BKRS = jnp.exp(z_BKRS)
    d_p_BKRS = _einsum('BKRH,BKSH->BKRS', d_out_BKRH, v_BKSH) - c_BKR[..., None]
    if d_entropy_BKR is not None:
        d_p_BKRS -= d_entropy_BKR[..., None] * z_BKRS
    d_s_BKRS = (p_BKRS * d_p_BKRS).astype(q_BKRH.dtype)
    # dk and dv come out with S last: the small operands q and dout are turned, not d_s and p,
    # whose transposed products run at a third of the speed on a CPU.
    return (
        _einsum('BKRS,BKSH->BKRH', d_s_BKRS, k_BKSH),
        _einsum('BKHR,BKRS->BKHS', q_BKRH.swapaxes(2, 3), d_s_BKRS),
        _einsum('BKHR,BKRS->BKHS', d_out_BKRH.swapaxes(2, 3), p_BKRS.astype(d_out_BKRH.dtype)),
    )


def _backward(
    plan: Plan, rows: _Rows, k_DBKSH: jax.Array, v_DBKSH: jax.Array, segments: _Segments | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of q, k and v, in the layout and dtype of each."""

    def pair(i, j, block_rows, *, cut):
        k_BKSH, v_BKSH = _at(k_DBKSH, j), _at(v_DBKSH, j)
        return _pair_gradient(plan, block_rows, k_BKSH, v_BKSH, segments, i, j, cut=cut)

    def block_gradient(carry, block):
        i, block_rows = block
        last = plan.cut(i)
        d_q_BKRH, d_k_BKHS, d_v_BKHS = pair(i, last, block_rows, cut=True)
        if plan.q_blocks == plan.k_blocks == 1:
            return (d_k_BKHS[None], d_v_BKHS[None]), d_q_BKRH.astype(rows.q_CBKRH.dtype)

        def step(j, sums):
            d_q_BKRH, d_k_DBKHS, d_v_DBKHS = sums
            more_q, more_k, more_v = pair(i, j, block_rows, cut=False)
            return (
                d_q_BKRH + more_q,
                _add_at(d_k_DBKHS, j, more_k),
                _add_at(d_v_DBKHS, j, more_v),
            )

        d_k_DBKHS, d_v_DBKHS = carry
        sums = d_q_BKRH, _add_at(d_k_DBKHS, last, d_k_BKHS), _add_at(d_v_DBKHS, last, d_v_BKHS)
        d_q_BKRH, *carry = lax.fori_loop(0, last, step, sums)
        return tuple(carry), d_q_BKRH.astype(rows.q_CBKRH.dtype)

    zeros_DBKHS = jnp.zeros_like(k_DBKSH, jnp.float32).swapaxes(3, 4)
    (d_k_DBKHS, d_v_DBKHS), d_q_CBKRH = _scan_blocks(
        block_gradient, (zeros_DBKHS, zeros_DBKHS), rows
    )
    d_k_DBKSH = d_k_DBKHS.astype(k_DBKSH.dtype).swapaxes(3, 4)
    return d_q_CBKRH, d_k_DBKSH, d_v_DBKHS.astype(v_DBKSH.dtype).swapaxes(3, 4)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(
    plan: Plan,
    q_CBKRH: jax.Array,
    k_DBKSH: jax.Array,
    v_DBKSH: jax.Array,
    segments: _Segments | None,
) -> _Result:
    return _forward(plan, q_CBKRH, k_DBKSH, v_DBKSH, segments)


def _attend_forward(plan: Plan, *arguments):
    inputs = jax.tree.map(
        lambda x: x.value, arguments, is_leaf=lambda x: isinstance(x, CustomVJPPrimal)
    )
    result = _forward(plan, *inputs)
    return result, (inputs, result)


def _attend_backward(plan: Plan, saved, cotangents: _Result):
    (q_CBKRH, k_DBKSH, v_DBKSH, segments), (out_CBKRH, lse_CBKR, entropy_CBKR) = saved
    # An output that is not used downstream has a symbolic zero for its cotangent.
    d_out_CBKRH, d_lse_CBKR, d_entropy_CBKR = (
        None if isinstance(x, SymbolicZero) else x for x in cotangents
    )
    if d_out_CBKRH is None:
        d_out_CBKRH = jnp.zeros_like(out_CBKRH)
    c_CBKR = _einsum('CBKRH,CBKRH->CBKR', d_out_CBKRH, out_CBKRH)
    if d_lse_CBKR is not None:
        c_CBKR -= d_lse_CBKR
    if d_entropy_CBKR is not None:
        c_CBKR += d_entropy_CBKR * entropy_CBKR
    empty_CBKR = lse_CBKR == -jnp.inf
    rows = _Rows(
        q_CBKRH,
        d_out_CBKRH,
        jnp.where(empty_CBKR, 0.0, lse_CBKR),
        jnp.where(empty_CBKR, 0.0, c_CBKR),
        d_entropy_CBKR,
    )
    return *_backward(plan, rows, k_DBKSH, v_DBKSH, segments), None


_attend.defvjp(_attend_forward, _attend_backward, symbolic_zeros=True)
