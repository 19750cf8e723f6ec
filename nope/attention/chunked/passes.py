"""Forward and backward pass of chunked attention over blocks; letters as in `layout`."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nope.attention.bias import toeplitz
from nope.attention.blocks import BlockPlan, BlockRange
from nope.attention.flash import FLOOR, HIDDEN, Wanted, logit_gradient, zeros_like
from nope.attention.structure import Mask
from nope.runtime.products import exact_einsum


class Segments(NamedTuple):
    """Segment ids by block: [C, B, q_block] and [D, B, k_block]."""

    q_CBT: jax.Array
    kv_DBS: jax.Array


class BlockRules(NamedTuple):
    """Arrays of the mask and the key bias, which is by key/value head and head of its group.
    offset: position of query 0, None for 0."""

    segments: Segments | None
    offset: jax.Array | None
    bias_DBKGS: jax.Array | None


class Lines(NamedTuple):
    """Numbers by distance for each head, in the order of `distances`: a term and a factor of the
    products. None for neither."""

    bias_KGD: jax.Array | None
    factors_KGD: jax.Array | None


class _Sums(NamedTuple):
    """Sums over some keys of one query block, relative to the exponential of `maximum`."""

    maximum_BKR: jax.Array
    norm_BKR: jax.Array
    entropy_BKR: jax.Array | None
    out_BKRH: jax.Array


class Result(NamedTuple):
    """By query block: out in the input dtype, lse, entropy and largest logit (or None) float32."""

    out_CBKRH: jax.Array
    lse_CBKR: jax.Array
    entropy_CBKR: jax.Array | None
    max_CBKR: jax.Array | None


class BlockRows(NamedTuple):
    """Inputs of the backward pass by query: all blocks, or one without the axis C."""

    q_CBKRH: jax.Array
    d_out_CBKRH: jax.Array
    lse_CBKR: jax.Array
    c_CBKR: jax.Array
    d_entropy_CBKR: jax.Array | None


def _at(array_D: jax.Array, j: jax.Array | int) -> jax.Array:
    return lax.dynamic_index_in_dim(array_D, j, keepdims=False)


def _add_at(array_D: jax.Array, j: jax.Array | int, value: jax.Array) -> jax.Array:
    return lax.dynamic_update_index_in_dim(array_D, _at(array_D, j) + value, j, axis=0)


def _logits(
    plan: BlockPlan,
    q_BKRH: jax.Array,
    k_BKSH: jax.Array,
    lines: Lines,
    rules: BlockRules,
    i: jax.Array | int,
    j: jax.Array | int,
    *,
    cut: bool,
) -> jax.Array:
    """float32 logits [B, K, R, S] of query block i and key block j, hidden ones `HIDDEN`.

    Only a block that is `cut` needs the rules of position or the end of the keys.
    """
    s_BKRS = exact_einsum('BKRH,BKSH->BKRS', q_BKRH, k_BKSH)
    if lines.factors_KGD is not None:
        s_BKRS *= _by_pair(plan, lines.factors_KGD, i, j)
    if lines.bias_KGD is not None:
        s_BKRS += _by_pair(plan, lines.bias_KGD, i, j)
    if rules.bias_DBKGS is not None:
        biased_BKGTS = _by_group(plan, s_BKRS) + _at(rules.bias_DBKGS, j)[..., None, :]
        s_BKRS = biased_BKGTS.reshape(s_BKRS.shape)
    groups = s_BKRS.shape[2] // plan.q_block
    # Only differences of positions count in the block on the diagonal. With constants XLA's CPU
    # backend takes a tenth of the time that it takes with the index of a loop.
    diagonal = cut and plan.causal and plan.one_cut_block
    q_first, k_first = (0, 0) if diagonal else (i * plan.q_block, j * plan.k_block)
    first = 0 if rules.offset is None else rules.offset
    q_index_R = first + q_first + jnp.tile(jnp.arange(plan.q_block), groups)
    k_index_S = k_first + jnp.arange(plan.k_block)
    q_ids_BR = kv_ids_BS = None
    if rules.segments is not None:
        q_ids_BR = jnp.tile(_at(rules.segments.q_CBT, i), (1, groups))
        kv_ids_BS = _at(rules.segments.kv_DBS, j)
    rule = Mask(causal=plan.causal and cut, window=plan.window if cut else None)
    seen_BRS = rule.visible(q_index_R, k_index_S, q_ids_BR, kv_ids_BS)
    if cut and not plan.padding_is_hidden and plan.keys % plan.k_block:
        inside_11S = (k_index_S < plan.keys)[None, None]
        seen_BRS = inside_11S if seen_BRS is None else seen_BRS & inside_11S
    if seen_BRS is None:
        return s_BKRS
    return jnp.where(seen_BRS[:, None], s_BKRS, HIDDEN)


def _by_group(plan: BlockPlan, s_BKRS: jax.Array) -> jax.Array:
    """[B, K, R, S] -> [B, K, G, q_block, S]."""
    B, K, _, S = s_BKRS.shape
    return s_BKRS.reshape(B, K, -1, plan.q_block, S)


def _by_pair(
    plan: BlockPlan, line_KGD: jax.Array, i: jax.Array | int, j: jax.Array | int
) -> jax.Array:
    """[K, R, S]: the numbers of a line for one pair of blocks."""
    size = plan.q_block + plan.k_block - 1
    part_KGD = lax.dynamic_slice_in_dim(line_KGD, _line_start(plan, i, j), size, axis=2)
    block_KGTS = toeplitz(part_KGD, plan.q_block)
    return block_KGTS.reshape(line_KGD.shape[0], -1, plan.k_block)


def _line_gradient(
    plan: BlockPlan,
    d_line_KGD: jax.Array,
    d_block_BKRS: jax.Array,
    i: jax.Array | int,
    j: jax.Array | int,
) -> jax.Array:
    """`d_line_KGD` with the part of one pair of blocks added: sums over its diagonals."""
    K, G, _ = d_line_KGD.shape
    size = plan.q_block + plan.k_block - 1
    turn = jax.linear_transpose(
        lambda part_KGD: toeplitz(part_KGD, plan.q_block),
        jax.ShapeDtypeStruct((K, G, size), jnp.float32),
    )
    (more_KGD,) = turn(jnp.sum(d_block_BKRS, axis=0).reshape(K, G, plan.q_block, plan.k_block))
    start = _line_start(plan, i, j)
    old_KGD = lax.dynamic_slice_in_dim(d_line_KGD, start, size, axis=2)
    return lax.dynamic_update_slice_in_dim(d_line_KGD, old_KGD + more_KGD, start, axis=2)


def _line_start(plan: BlockPlan, i: jax.Array | int, j: jax.Array | int) -> jax.Array | int:
    """Index of the first distance of a pair of blocks, in the order of `distances`."""
    return i * plan.q_block + (plan.k_blocks - 1 - j) * plan.k_block


def _visit(plan: BlockPlan, seen: BlockRange, step: Any, state: Any) -> Any:
    """`state = step(j, state, cut=...)` over the key blocks of `seen` but the last."""
    if plan.k_blocks == 1:
        return state
    cut, whole = (functools.partial(step, cut=x) for x in (True, False))
    if seen.cut[1]:
        state = lax.fori_loop(seen.whole_end, seen.end - 1, cut, state)
    state = lax.fori_loop(seen.whole_begin, seen.whole_end, whole, state)
    if seen.cut[0]:
        state = lax.fori_loop(seen.begin, seen.whole_begin, cut, state)
    return state


def _block_sums(
    plan: BlockPlan, s_BKRS: jax.Array, v_BKSH: jax.Array, maximum_BKR: jax.Array
) -> _Sums:
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
        exact_einsum('BKRS,BKSH->BKRH', p_BKRS.astype(v_BKSH.dtype), v_BKSH),
    )


def _join(plan: BlockPlan, sums: _Sums, s_BKRS: jax.Array, v_BKSH: jax.Array) -> _Sums:
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


def forward(
    plan: BlockPlan,
    q_CBKRH: jax.Array,
    k_DBKSH: jax.Array,
    v_DBKSH: jax.Array,
    lines: Lines,
    rules: BlockRules,
    *,
    max_logit: bool = False,
) -> Result:
    def attend_block(carry, block):
        i, q_BKRH = block
        seen = plan.visible_keys(i, 0 if rules.offset is None else rules.offset)
        last = seen.end - 1

        def logits(j, *, cut):
            return _logits(plan, q_BKRH, _at(k_DBKSH, j), lines, rules, i, j, cut=cut)

        def step(j, sums, *, cut):
            return _join(plan, sums, logits(j, cut=cut), _at(v_DBKSH, j))

        s_BKRS = logits(last, cut=True)
        maximum_BKR = jnp.maximum(jnp.max(s_BKRS, axis=-1), FLOOR)
        sums = _block_sums(plan, s_BKRS, _at(v_DBKSH, last), maximum_BKR)
        sums = _visit(plan, seen, step, sums)
        any_BKR = sums.norm_BKR > 0
        norm_BKR = jnp.where(any_BKR, sums.norm_BKR, 1.0)
        log_norm_BKR = jnp.log(norm_BKR)
        entropy_BKR = None
        if sums.entropy_BKR is not None:
            entropy_BKR = log_norm_BKR - sums.entropy_BKR / norm_BKR
        return carry, Result(
            (sums.out_BKRH / norm_BKR[..., None]).astype(q_BKRH.dtype),
            jnp.where(any_BKR, sums.maximum_BKR + log_norm_BKR, -jnp.inf),
            entropy_BKR,
            jnp.where(any_BKR, sums.maximum_BKR, -jnp.inf) if max_logit else None,
        )

    return _scan_blocks(attend_block, None, q_CBKRH)[1]


def _scan_blocks(function: Any, carry: Any, arrays_C: Any) -> tuple[Any, Any]:
    """`lax.scan` over (i, arrays[i]); one block runs without the loop."""
    blocks = jax.tree.leaves(arrays_C)[0].shape[0]
    if blocks > 1:
        return lax.scan(function, carry, (jnp.arange(blocks), arrays_C))
    carry, result = function(carry, (0, jax.tree.map(lambda x: x[0], arrays_C)))
    return carry, jax.tree.map(lambda x: x[None], result)


class Sums(NamedTuple):
    """Float32 sums: of k, v and the key bias for all key blocks with S last, of the bias by
    distance."""

    d_k_DBKHS: jax.Array
    d_v_DBKHS: jax.Array
    d_bias_DBKGS: jax.Array | None
    d_line_KGD: jax.Array | None


def _pair_gradient(
    rows: BlockRows,
    s_BKRS: jax.Array,
    k_BKSH: jax.Array,
    v_BKSH: jax.Array,
    factors_KRS: jax.Array | None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """float32 (dq [B, K, R, H], dk [B, K, H, S], dv [B, K, H, S], ds) from one pair of blocks."""
    q_BKRH, d_out_BKRH, lse_BKR, c_BKR, d_entropy_BKR = rows
    z_BKRS = s_BKRS - lse_BKR[..., None]
    p_BKRS = jnp.exp(z_BKRS)
    d_p_BKRS = exact_einsum('BKRH,BKSH->BKRS', d_out_BKRH, v_BKSH)
    d_entropy_BKR1 = None if d_entropy_BKR is None else d_entropy_BKR[..., None]
    exact_BKRS = logit_gradient(p_BKRS, d_p_BKRS, z_BKRS, c_BKR[..., None], d_entropy_BKR1)
    d_product_BKRS = exact_BKRS if factors_KRS is None else exact_BKRS * factors_KRS
    # Float16 ends at 65,504, which ds may pass where dq and dk do not.
    dtype = jnp.float32 if q_BKRH.dtype == jnp.float16 else q_BKRH.dtype
    d_s_BKRS = d_product_BKRS.astype(dtype)
    # dk and dv come out with S last: the small operands q and dout are turned, not d_s and p,
    # whose transposed products run at a third of the speed on a CPU.
    return (
        exact_einsum('BKRS,BKSH->BKRH', d_s_BKRS, k_BKSH.astype(dtype)),
        exact_einsum('BKHR,BKRS->BKHS', q_BKRH.swapaxes(2, 3).astype(dtype), d_s_BKRS),
        exact_einsum('BKHR,BKRS->BKHS', d_out_BKRH.swapaxes(2, 3), p_BKRS.astype(d_out_BKRH.dtype)),
        exact_BKRS,
    )


def backward(
    plan: BlockPlan,
    rows: BlockRows,
    k_DBKSH: jax.Array,
    v_DBKSH: jax.Array,
    lines: Lines,
    rules: BlockRules,
    *,
    wanted: Wanted,
) -> tuple[jax.Array, Sums]:
    """The gradient of q [C, B, K, R, H] in its dtype, and the sums."""

    def block_gradient(sums, block):
        i, block_rows = block
        seen = plan.visible_keys(i, 0 if rules.offset is None else rules.offset)
        last = seen.end - 1

        def pair(j, *, cut):
            k_BKSH, v_BKSH = _at(k_DBKSH, j), _at(v_DBKSH, j)
            s_BKRS = _logits(plan, block_rows.q_CBKRH, k_BKSH, lines, rules, i, j, cut=cut)
            factors_KRS = None
            if lines.factors_KGD is not None:
                factors_KRS = _by_pair(plan, lines.factors_KGD, i, j)
            return _pair_gradient(block_rows, s_BKRS, k_BKSH, v_BKSH, factors_KRS)

        def add(j, sums, d_k_BKHS, d_v_BKHS, d_s_BKRS):
            d_line_KGD = sums.d_line_KGD
            if d_line_KGD is not None:
                d_line_KGD = _line_gradient(plan, d_line_KGD, d_s_BKRS, i, j)
            d_bias_DBKGS = sums.d_bias_DBKGS
            if d_bias_DBKGS is not None:
                d_bias_BKGS = jnp.sum(_by_group(plan, d_s_BKRS), axis=3)
                d_bias_DBKGS = _add_at(d_bias_DBKGS, j, d_bias_BKGS)
            if plan.q_blocks == plan.k_blocks == 1:
                return Sums(d_k_BKHS[None], d_v_BKHS[None], d_bias_DBKGS, d_line_KGD)
            return Sums(
                _add_at(sums.d_k_DBKHS, j, d_k_BKHS),
                _add_at(sums.d_v_DBKHS, j, d_v_BKHS),
                d_bias_DBKGS,
                d_line_KGD,
            )

        def step(j, state, *, cut):
            d_q_BKRH, sums = state
            more_BKRH, *others = pair(j, cut=cut)
            return d_q_BKRH + more_BKRH, add(j, sums, *others)

        d_q_BKRH, *others = pair(last, cut=True)
        d_q_BKRH, sums = _visit(plan, seen, step, (d_q_BKRH, add(last, sums, *others)))
        return sums, d_q_BKRH.astype(rows.q_CBKRH.dtype)

    zeros_DBKHS = jnp.zeros_like(k_DBKSH, jnp.float32).swapaxes(3, 4)
    zeros_DBKGS = zeros_like(rules.bias_DBKGS, wanted.key_bias)
    zeros = Sums(zeros_DBKHS, zeros_DBKHS, zeros_DBKGS, zeros_like(lines.bias_KGD, wanted.line))
    sums, d_q_CBKRH = _scan_blocks(block_gradient, zeros, rows)
    return d_q_CBKRH, sums
