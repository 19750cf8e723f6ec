"""Programs of the Triton attention kernels; `kernel` has their grids.

A program holds one block of queries (or of keys) and goes over the visible blocks of the other
side. Blocks that a rule of position cuts come first and last, whole ones in between. Only cut
blocks are masked, and those out of sight are never loaded. Logits are float32 whatever the inputs,
and exist for one pair of blocks at a time; the online softmax and the gradients are those of
`flash.py`. Exponentials have base 2, as in the hardware. Logits, log-sum-exps and entropies are
natural. The factor follows the subtraction of the maximum, where its rounding costs nothing.

Blocks are powers of two, which Triton asks for. Rows beyond the end of an array and columns beyond
the head dim are loaded as zeros; what is computed from them is hidden or not stored (`memory`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from nope.attention.blocks import BlockRange, sweep, visible_blocks
from nope.attention.flash import FLOOR, HIDDEN, Rules, logit_gradient
from nope.attention.pallas_gpu.memory import (
    load_matrix,
    load_vector,
    ragged,
    store_matrix,
    store_vector,
)
from nope.attention.structure import in_sight
from nope.runtime.libraries import pl, triton

_LOG2_E = math.log2(math.e)
_FAR = 2**30  # further than any key, and positions can be added to it


@dataclasses.dataclass(frozen=True)
class Problem:
    """Static shape of a call.

    queries: rows of q. With `fold` > 1, row r is query r // fold of query head r % fold of the
        key/value head that the program works on; else rows are queries.
    keys, head_dim: S and H. group: query heads for each key/value head.
    float32: precision of the products of float32 inputs, as `lax.dot_general` takes it.
    """

    rules: Rules
    queries: int
    keys: int
    head_dim: int
    group: int
    fold: int = 1
    float32: Any = lax.Precision.HIGHEST

    @property
    def padded_head_dim(self) -> int:
        return max(16, pl.next_power_of_2(self.head_dim))


class Blocks(NamedTuple):
    """Rows of q and keys that a program works on at a time; its warps, and the loads in flight."""

    queries: int
    keys: int
    warps: int
    stages: int


class RowRefs(NamedTuple):
    """`flash.Rows`, blocked."""

    d_out: Any
    lse: Any
    c: Any
    d_entropy: Any


class Refs(NamedTuple):
    """The arrays of a program (None where the call has none). Their leading axes are the kernel's;
    the last ones are [T, H] or [S, H] for q, k, v, [T] or [S] for ids, [heads, D] for line and
    factors, and [heads, S] for key_bias."""

    q: Any
    k: Any
    v: Any
    line: Any
    factors: Any
    key_bias: Any
    q_ids: Any
    kv_ids: Any
    offset: Any
    rows: RowRefs | None


class Side(NamedTuple):
    """Indices and segment ids of the queries or keys of a block, as a column or a row."""

    at: jax.Array
    ids: jax.Array | None


def _offset(problem: Problem, refs: Refs) -> jax.Array | int:
    return refs.offset[0] if problem.rules.offset is None else problem.rules.offset


def _indices(start: jax.Array, size: int) -> jax.Array:
    return start + lax.iota(jnp.int32, size)


def _unfold(problem: Problem, row: jax.Array) -> jax.Array:
    """The query of a row."""
    return row if problem.fold == 1 else lax.div(row, jnp.full_like(row, problem.fold))


def _visible_keys(problem: Problem, blocks: Blocks, refs: Refs, i: jax.Array) -> BlockRange:
    """The key blocks that query block i sees."""
    rows = i * blocks.queries, jnp.minimum((i + 1) * blocks.queries, problem.queries) - 1
    first, last = (_offset(problem, refs) + _unfold(problem, row) for row in rows)
    rules = problem.rules
    return visible_blocks(first, last, rules.behind, rules.ahead, problem.keys, blocks.keys)


def _column(x: jax.Array) -> jax.Array:
    return x[:, None]


def _row(x: jax.Array) -> jax.Array:
    return x[None, :]


def _side(ids_ref: Any, at: jax.Array, edge: jax.Array | None, length: int, turn: Any) -> Side:
    ids = None if ids_ref is None else turn(load_vector(ids_ref, edge, length))
    return Side(turn(at), ids)


def _dot(problem: Problem, x: jax.Array, y: jax.Array, contract: tuple[int, int]) -> jax.Array:
    """Float32 sums of products."""
    return lax.dot_general(
        x, y, (((contract[0],), (contract[1],)), ((), ())),
        precision=problem.float32 if x.dtype == jnp.float32 else None,
        preferred_element_type=jnp.float32,
    )  # fmt: skip


class _Logits(NamedTuple):
    """Logits of one pair of blocks, hidden ones `HIDDEN`; their factors (None: 1)."""

    s: jax.Array
    factors: jax.Array | None


def _rule(
    problem: Problem,
    refs: Refs,
    s: jax.Array,
    q: Side,
    k: Side,
    head: Any,
    *,
    lead: tuple[Any, ...] = (),
    cut: bool,
) -> _Logits:
    """The logits of products s, with their factors and biases. Only where a block is `cut` can the
    rules of position and the ends of the arrays hide something.

    q, k: a column and a row, or the other way round, as `s` has them. head, lead: index into the
    biases' heads, and into the axes of the key bias before those.
    """
    t = _unfold(problem, q.at)
    ends = (q.at, problem.queries), (k.at, problem.keys)
    beyond = [length % max(at.shape) > 0 for at, length in ends]
    factors = None
    if refs.line is not None:
        index = t - k.at + (problem.keys - 1)
        if any(beyond):
            index = jnp.clip(index, 0, refs.line.shape[1] - 1)
        if refs.factors is not None:
            factors = triton.load(refs.factors.at[head, index])
            s *= factors
        s += triton.load(refs.line.at[head, index]).astype(jnp.float32)
    if refs.key_bias is not None:
        at = jnp.minimum(k.at, problem.keys - 1) if beyond[1] else k.at
        s += triton.load(refs.key_bias.at[(*lead, head, at)])
    seen = []
    if cut:
        rules = problem.rules
        near = in_sight(_offset(problem, refs) + t, k.at, causal=rules.causal, window=rules.window)
        if near is not None:
            seen.append(near)
        for (at, length), reaches in zip(ends, beyond, strict=True):
            if reaches:
                seen.append(jnp.broadcast_to(at < length, s.shape))
    if q.ids is not None and k.ids is not None:
        seen.append(q.ids == k.ids)
    if not seen:
        return _Logits(s, factors)
    visible = seen[0]
    for rule in seen[1:]:
        visible &= rule
    return _Logits(jnp.where(visible, s, HIDDEN), factors)


def forward_kernel(
    problem: Problem,
    blocks: Blocks,
    per_split: int,
    refs: Refs,
    out_ref: Any,
    lse_ref: Any,
    *more_refs: Any,
) -> None:
    """out, lse and, where asked for, entropy and largest logit of a block of queries over a part of
    the keys.

    Grid (parts, query blocks from the last on, heads, batch). per_split: key blocks of a part.
    """
    i = pl.num_programs(1) - 1 - pl.program_id(1)
    at_T = _indices(i * blocks.queries, blocks.queries)
    edge = ragged(at_T, problem.queries)
    q_TH = load_matrix(problem.head_dim, refs.q, edge, problem.queries)
    q = _side(refs.q_ids, at_T, edge, problem.queries, _column)
    head = 0 if problem.fold == 1 else lax.rem(q.at, jnp.full_like(q.at, problem.fold))

    def step(j, sums, *, cut):
        maximum_T, norm_T, *entropy_T, out_TH = sums
        here = pl.ds(j * blocks.keys, blocks.keys)
        at_S = _indices(j * blocks.keys, blocks.keys)
        edge = ragged(at_S, problem.keys, cut=cut)
        k = _side(
            None if refs.kv_ids is None else refs.kv_ids.at[here], at_S, edge, problem.keys, _row
        )
        k_SH = load_matrix(problem.head_dim, refs.k.at[here, :], edge, problem.keys)
        s_TS, _ = _rule(problem, refs, _dot(problem, q_TH, k_SH, (1, 1)), q, k, head, cut=cut)
        new_T = jnp.maximum(maximum_T, jnp.max(s_TS, axis=1))
        z_TS = s_TS - _column(new_T)
        p_TS = jnp.exp2(z_TS * _LOG2_E)
        moved_T = maximum_T - new_T
        decay_T = jnp.exp2(moved_T * _LOG2_E)
        if entropy_T:
            # sum_j e^(s_j - m) (s_j - m) moves with both of its factors.
            old_T = decay_T * (entropy_T[0] + moved_T * norm_T)
            entropy_T = [old_T + jnp.sum(p_TS * z_TS, axis=1)]
        v_SH = load_matrix(problem.head_dim, refs.v.at[here, :], edge, problem.keys)
        out_TH = _column(decay_T) * out_TH + _dot(problem, p_TS.astype(v_SH.dtype), v_SH, (1, 0))
        return new_T, decay_T * norm_T + jnp.sum(p_TS, axis=1), *entropy_T, out_TH

    seen = _visible_keys(problem, blocks, refs, i)
    part = pl.program_id(0) * per_split
    zeros_T = jnp.zeros(blocks.queries, jnp.float32)
    start = (
        jnp.full(blocks.queries, FLOOR, jnp.float32),
        *[zeros_T] * (2 if problem.rules.entropy else 1),
        jnp.zeros(q_TH.shape, jnp.float32),
    )
    sums = sweep(seen.within(part, part + per_split), step, start)

    maximum_T, norm_T, *entropy_T, out_TH = sums
    seen_T = norm_T > 0
    norm_T = jnp.where(seen_T, norm_T, 1.0)
    log_norm_T = jnp.log(norm_T)
    rows = edge, problem.queries
    store_matrix(problem.head_dim, out_ref, out_TH / _column(norm_T), *rows)
    store_vector(lse_ref, jnp.where(seen_T, maximum_T + log_norm_T, -jnp.inf), *rows)
    if entropy_T:
        store_vector(more_refs[0], log_norm_T - entropy_T[0] / norm_T, *rows)
    if problem.rules.max_logit:
        store_vector(more_refs[-1], jnp.where(seen_T, maximum_T, -jnp.inf), *rows)


class _Rows(NamedTuple):
    """`flash.Rows` of one block, the vectors as a column or a row."""

    d_out_TH: jax.Array
    lse: jax.Array
    c: jax.Array
    d_entropy: jax.Array | None


def _load_rows(
    problem: Problem, refs: Refs, here: tuple, lead: tuple, edge: jax.Array | None, turn: Any
) -> _Rows:
    """here: index into d_out; lead: into the vectors."""
    assert refs.rows is not None

    def vector(ref):
        return turn(load_vector(ref.at[lead], edge, problem.queries))

    d_out, lse, c, d_entropy = refs.rows
    return _Rows(
        load_matrix(problem.head_dim, d_out.at[here], edge, problem.queries),
        vector(lse),
        vector(c),
        None if d_entropy is None else vector(d_entropy),
    )


class _Pair(NamedTuple):
    """Weights, and the gradients of the logits and of the products, which factors multiply."""

    p: jax.Array
    d_s: jax.Array
    d_products: jax.Array


def _pair_gradient(rows: _Rows, logits: _Logits, d_p: jax.Array) -> _Pair:
    """d_p: dout . v."""
    z = logits.s - rows.lse
    p = jnp.exp2(z * _LOG2_E)
    d_s = logit_gradient(p, d_p, z, rows.c, rows.d_entropy)
    return _Pair(p, d_s, d_s if logits.factors is None else d_s * logits.factors)


def d_q_kernel(problem: Problem, blocks: Blocks, refs: Refs, d_q_ref: Any) -> None:
    """The gradient of one block of queries.

    Grid (1, query blocks from the last on, heads, batch).
    """
    i = pl.num_programs(1) - 1 - pl.program_id(1)
    at_T = _indices(i * blocks.queries, blocks.queries)
    edge = ragged(at_T, problem.queries)
    q_TH = load_matrix(problem.head_dim, refs.q, edge, problem.queries)
    q = _side(refs.q_ids, at_T, edge, problem.queries, _column)
    rows = _load_rows(problem, refs, (...,), (...,), edge, _column)

    def step(j, d_q_TH, *, cut):
        here = pl.ds(j * blocks.keys, blocks.keys)
        at_S = _indices(j * blocks.keys, blocks.keys)
        edge = ragged(at_S, problem.keys, cut=cut)
        k = _side(
            None if refs.kv_ids is None else refs.kv_ids.at[here], at_S, edge, problem.keys, _row
        )
        k_SH = load_matrix(problem.head_dim, refs.k.at[here, :], edge, problem.keys)
        v_SH = load_matrix(problem.head_dim, refs.v.at[here, :], edge, problem.keys)
        logits_TS = _rule(problem, refs, _dot(problem, q_TH, k_SH, (1, 1)), q, k, 0, cut=cut)
        pair_TS = _pair_gradient(rows, logits_TS, _dot(problem, rows.d_out_TH, v_SH, (1, 1)))
        return d_q_TH + _dot(problem, pair_TS.d_products.astype(k_SH.dtype), k_SH, (1, 0))

    seen = _visible_keys(problem, blocks, refs, i)
    d_q_TH = sweep(seen, step, jnp.zeros(q_TH.shape, jnp.float32))
    store_matrix(problem.head_dim, d_q_ref, d_q_TH, edge, problem.queries)


def d_kv_kernel(
    problem: Problem, blocks: Blocks, refs: Refs, d_k_ref: Any, d_v_ref: Any, *d_bias_refs: Any
) -> None:
    """The gradients of one block of keys and values, summed over the query heads of their group. On
    demand it has that of each head's key bias too.

    Grid (key blocks, key/value heads, batch). Logits are transposed, [S, T], so that no product
    needs another transposition.
    """
    j = pl.program_id(0)
    at_S = _indices(j * blocks.keys, blocks.keys)
    edge = ragged(at_S, problem.keys)
    k_SH = load_matrix(problem.head_dim, refs.k, edge, problem.keys)
    v_SH = load_matrix(problem.head_dim, refs.v, edge, problem.keys)
    k = _side(refs.kv_ids, at_S, edge, problem.keys, _column)

    def step(i, sums, *, g, cut):
        d_k_SH, d_v_SH, *d_bias_S = sums
        here = pl.ds(i * blocks.queries, blocks.queries)
        at_T = _indices(i * blocks.queries, blocks.queries)
        edge = ragged(at_T, problem.queries, cut=cut)
        q = _side(
            None if refs.q_ids is None else refs.q_ids.at[here], at_T, edge, problem.queries, _row
        )
        q_TH = load_matrix(problem.head_dim, refs.q.at[here, g, :], edge, problem.queries)
        rows = _load_rows(problem, refs, (here, g, slice(None)), (g, here), edge, _row)
        logits_ST = _rule(problem, refs, _dot(problem, k_SH, q_TH, (1, 1)), q, k, g, cut=cut)
        p_ST, d_s_ST, d_products_ST = _pair_gradient(
            rows, logits_ST, _dot(problem, v_SH, rows.d_out_TH, (1, 1))
        )
        d_v_SH += _dot(problem, p_ST.astype(v_SH.dtype), rows.d_out_TH, (1, 0))
        d_k_SH += _dot(problem, d_products_ST.astype(q_TH.dtype), q_TH, (1, 0))
        return d_k_SH, d_v_SH, *(sums_S + jnp.sum(d_s_ST, axis=1) for sums_S in d_bias_S)

    # Key s is seen by the queries at s - ahead to s + behind: the rule seen from the other side.
    first = j * blocks.keys - _offset(problem, refs)
    last = first + blocks.keys - 1
    rules = problem.rules
    seen = visible_blocks(first, last, rules.ahead, rules.behind, problem.queries, blocks.queries)

    def head(g, sums):
        zeros_S = [jnp.zeros(blocks.keys, jnp.float32) for _ in d_bias_refs]
        d_k_SH, d_v_SH, *d_bias_S = sweep(seen, functools.partial(step, g=g), (*sums, *zeros_S))
        for ref, sums_S in zip(d_bias_refs, d_bias_S, strict=True):
            store_vector(ref.at[g, :], sums_S, edge, problem.keys)
        return d_k_SH, d_v_SH

    zeros_SH = jnp.zeros(k_SH.shape, jnp.float32)
    d_k_SH, d_v_SH = lax.fori_loop(0, problem.group, head, (zeros_SH, zeros_SH))
    store_matrix(problem.head_dim, d_k_ref, d_k_SH, edge, problem.keys)
    store_matrix(problem.head_dim, d_v_ref, d_v_SH, edge, problem.keys)


def d_line_kernel(
    problem: Problem, blocks: Blocks, first: int, refs: Refs, d_bias_ref: Any
) -> None:
    """The gradient of the bias, summed over all pairs of blocks (i, j) on one diagonal of blocks.

    In blocks of L, query i L + r and key j L + u are (i - j) L + r - u apart. On one diagonal the
    [L, L] logits of all pairs have their distances in the same places. They are summed as they are.
    Grid (diagonals i - j = first, first + 1, ..., heads).
    """
    size = blocks.keys
    diagonal = first + pl.program_id(0)
    batch = refs.q.shape[0]

    def pair(b, i, d_bias_TS):
        at_T, at_S = _indices(i * size, size), _indices((i - diagonal) * size, size)
        here_T, here_S = pl.ds(i * size, size), pl.ds((i - diagonal) * size, size)
        edge_T, edge_S = ragged(at_T, problem.queries), ragged(at_S, problem.keys)
        q_ids, kv_ids = (
            None if ref is None else ref.at[b, here]
            for ref, here in ((refs.q_ids, here_T), (refs.kv_ids, here_S))
        )
        q = _side(q_ids, at_T, edge_T, problem.queries, _column)
        k = _side(kv_ids, at_S, edge_S, problem.keys, _row)
        q_TH = load_matrix(problem.head_dim, refs.q.at[b, here_T, :], edge_T, problem.queries)
        k_SH, v_SH = (
            load_matrix(problem.head_dim, ref.at[b, here_S, :], edge_S, problem.keys)
            for ref in (refs.k, refs.v)
        )
        rows = _load_rows(problem, refs, (b, here_T, slice(None)), (b, here_T), edge_T, _column)
        products_TS = _dot(problem, q_TH, k_SH, (1, 1))
        logits_TS = _rule(problem, refs, products_TS, q, k, 0, lead=(b,), cut=True)
        d_p_TS = _dot(problem, rows.d_out_TH, v_SH, (1, 1))
        return d_bias_TS + _pair_gradient(rows, logits_TS, d_p_TS).d_s

    # Whether a diagonal is in sight is the same for all of its pairs.
    nearest = _offset(problem, refs) + diagonal * size - (size - 1)
    behind, ahead = (_FAR if x is None else x for x in (problem.rules.behind, problem.rules.ahead))
    seen = (nearest <= behind) & (nearest + 2 * (size - 1) >= -ahead)
    begin = jnp.maximum(diagonal, 0)
    end = jnp.minimum(pl.cdiv(problem.queries, size), pl.cdiv(problem.keys, size) + diagonal)
    end = jnp.where(seen, end, begin)
    d_bias_ref[...] = lax.fori_loop(
        0,
        batch,
        lambda b, sums: lax.fori_loop(begin, end, lambda i, sums: pair(b, i, sums), sums),
        jnp.zeros((size, size), jnp.float32),
    )
