"""Chunked attention kernel: memory linear in length on any device, forward and backward.

Queries and keys are cut into blocks. A scan goes over the query blocks; for each, the last key
block that it sees comes first, and an online softmax joins those before it. Only blocks on the
diagonal, at the edge of a window or at the end of the keys are masked. Blocks out of sight are
never visited. A sequence of one block runs without any loop, a few queries as `decode` says. Logits
exist for one pair of blocks at a time, and again in the backward pass. So do biases, which come as
one number per distance, or per head and key, and leave their gradient as one. On a CPU the blocks,
and with them the last bits, follow the number of processors.

The running sums and the gradients are those that `flash` derives.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

import jax

from nope.attention.bias import Bias
from nope.attention.blocks import BlockPlan
from nope.attention.chunked import decode, layout, passes
from nope.attention.flash import BEYOND, Gradients, Operands, Rows, Rules, Wanted, flash_attention
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime import processors
from nope.runtime.platform import target_device


def chunked_attention(
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
    """softmax(q k^T) v with its lse and entropy; see `nope.attention.api.attention`."""
    (_, T, N, _), S = q_BTNH.shape, k_BSKH.shape[1]
    few = T < S and T * N <= decode.MOST_ROWS
    attend = decode.decode_attention if few else _flash_chunked
    return attend(
        q_BTNH, k_BSKH, v_BSKH,
        mask=mask, bias=bias, key_bias_BNS=key_bias_BNS, entropy=entropy, max_logit=max_logit,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Chunked:
    """A `nope.attention.flash.Kernel`."""

    by_slope: ClassVar[bool] = False

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        plan = _plan(rules, operands)
        result = passes.forward(
            plan, *_blocks(plan, operands), _rules(plan, rules, operands), max_logit=rules.max_logit
        )
        stats = result.lse_CBKR, result.entropy_CBKR, result.max_CBKR
        return AttentionOutput(
            layout.join_q(result.out_CBKRH, plan),
            *(None if x is None else layout.join_rows(x, plan) for x in stats),  # type: ignore
        )

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients:
        plan, K = _plan(rules, operands), operands.k_BSKH.shape[2]
        q_CBKRH, k_DBKSH, v_DBKSH, lines = _blocks(plan, operands)
        d_entropy_CBKR = None
        if rows.d_entropy_BNT is not None:
            d_entropy_CBKR = layout.split_rows(rows.d_entropy_BNT, K, plan)
        block_rows = passes.BlockRows(
            q_CBKRH,
            layout.split_q(rows.d_out_BTNH, K, plan),
            layout.split_rows(rows.lse_BNT, K, plan, BEYOND),
            layout.split_rows(rows.c_BNT, K, plan),
            d_entropy_CBKR,
        )
        d_q_CBKRH, sums = passes.backward(
            plan, block_rows, k_DBKSH, v_DBKSH, lines, _rules(plan, rules, operands), wanted=wanted
        )
        d_line_ND = layout.join_line(sums.d_line_KGD, plan)
        d_key_bias_BNS = None
        if sums.d_bias_DBKGS is not None:
            d_key_bias_BNS = layout.join_by_key(sums.d_bias_DBKGS, plan)
        return Gradients(
            layout.join_q(d_q_CBKRH, plan),
            layout.join_kv(sums.d_k_DBKHS, plan).astype(operands.k_BSKH.dtype),
            layout.join_kv(sums.d_v_DBKHS, plan).astype(operands.v_BSKH.dtype),
            d_line_ND,
            d_key_bias_BNS,
        )


_flash_chunked = functools.partial(flash_attention, Chunked())


def _plan(rules: Rules, operands: Operands) -> BlockPlan:
    B, T, N, _ = operands.q_BTNH.shape
    return layout.make_plan(
        causal=rules.causal,
        window=rules.window,
        aligned=rules.offset == 0,
        entropy=rules.entropy,
        rows=B * N,
        group=N // operands.k_BSKH.shape[2],
        queries=T,
        keys=operands.k_BSKH.shape[1],
        backend=target_device()[0],
        threads=processors.usable(),
    )


def _blocks(
    plan: BlockPlan, operands: Operands
) -> tuple[jax.Array, jax.Array, jax.Array, passes.Lines]:
    """q [C, B, K, R, H], k and v [D, B, K, S, H], and the lines [K, G, distances]."""
    K = operands.k_BSKH.shape[2]
    lines = passes.Lines(
        layout.split_line(operands.line_ND, K, plan),
        layout.split_line(operands.factors_ND, K, plan),
    )
    return (
        layout.split_q(operands.q_BTNH, K, plan),
        layout.split_kv(operands.k_BSKH, plan),
        layout.split_kv(operands.v_BSKH, plan),
        lines,
    )


def _rules(plan: BlockPlan, rules: Rules, operands: Operands) -> passes.BlockRules:
    segments = None
    if operands.q_ids_BT is not None and operands.kv_ids_BS is not None:
        segments = passes.Segments(
            layout.cut_blocks(operands.q_ids_BT, plan.q_block).swapaxes(0, 1),
            layout.cut_blocks(operands.kv_ids_BS, plan.k_block).swapaxes(0, 1),
        )
    bias_DBKGS = None
    if operands.key_bias_BNS is not None:
        K = operands.k_BSKH.shape[2]
        bias_DBKGS = layout.split_by_key(operands.key_bias_BNS, K, plan)
    return passes.BlockRules(segments, None if rules.offset == 0 else operands.offset, bias_DBKGS)
