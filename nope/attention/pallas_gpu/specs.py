"""Block specs of the Triton attention kernels."""

from __future__ import annotations

from typing import Any

import jax
from jax import lax

from nope.attention.pallas_gpu.programs import Blocks, Problem, Refs, RowRefs
from nope.runtime.libraries import pl


def counts(problem: Problem, blocks: Blocks) -> tuple[int, int]:
    """Numbers of query blocks and of key blocks."""
    return pl.cdiv(problem.queries, blocks.queries), pl.cdiv(problem.keys, blocks.keys)


def padded(problem: Problem, blocks: Blocks) -> tuple[int, int]:
    """T and S in whole blocks."""
    q_blocks, k_blocks = counts(problem, blocks)
    return q_blocks * blocks.queries, k_blocks * blocks.keys


def grouped(refs: Refs, kv_heads: int) -> Refs:
    """Query heads split into K groups: axes [B, T, K, G, H], [B, K, G, T], [K, G, D] (of both
    lines) and [B, K, G, S]."""
    assert refs.rows is not None

    def by_query(x):
        return x.reshape(*x.shape[:2], kv_heads, -1, x.shape[3])

    def by_row(x):
        return None if x is None else x.reshape(x.shape[0], kv_heads, -1, x.shape[2])

    def by_distance(x):
        return None if x is None else x.reshape(kv_heads, -1, x.shape[2])

    key_bias = refs.key_bias
    if key_bias is not None:
        key_bias = key_bias.reshape(key_bias.shape[0], kv_heads, -1, key_bias.shape[3])
    d_out, *vectors = refs.rows
    return refs._replace(
        q=by_query(refs.q),
        line=by_distance(refs.line),
        factors=by_distance(refs.factors),
        key_bias=key_bias,
        rows=RowRefs(by_query(d_out), *map(by_row, vectors)),
    )


def _present(specs: Refs, refs: Refs) -> Refs:
    """The specs of the arrays that there are."""
    return jax.tree.map(
        lambda ref, spec: None if ref is None else spec, refs, specs, is_leaf=lambda x: x is None
    )


def by_query(problem: Problem, blocks: Blocks) -> Any:
    """`pl.BlockSpec` for a grid (parts, query blocks, heads, batch), with the last query block,
    which sees most under a causal rule, first."""
    last = counts(problem, blocks)[0] - 1

    def spec(shape, index):
        return pl.BlockSpec(shape, lambda p, i, n, b: index(p, last - i, n, b))

    return spec


def specs_by_query(problem: Problem, blocks: Blocks, refs: Refs) -> Refs:
    spec = by_query(problem, blocks)
    H, S = problem.padded_head_dim, padded(problem, blocks)[1]
    q = spec((None, blocks.queries, None, H), lambda p, i, n, b: (b, i, n, 0))
    k = spec((None, S, None, H), lambda p, i, n, b: (b, 0, lax.div(n, problem.group), 0))
    row = spec((None, None, blocks.queries), lambda p, i, n, b: (b, n, i))
    line = _line_spec(refs, lambda p, i, n, b: (n, 0, 0))
    specs = Refs(
        q=q,
        k=k,
        v=k,
        line=line,
        factors=line,
        key_bias=_key_bias_spec(refs, None, lambda p, i, n, b: (b, n, 0, 0)),
        q_ids=spec((None, blocks.queries), lambda p, i, n, b: (b, i)),
        kv_ids=spec((None, S), lambda p, i, n, b: (b, 0)),
        offset=spec((1,), lambda p, i, n, b: (0,)),
        rows=RowRefs(q, row, row, row),
    )
    return _present(specs, refs)


def specs_by_key(problem: Problem, blocks: Blocks, refs: Refs) -> Refs:
    """For a grid (key blocks, key/value heads, batch)."""
    H, T, G = problem.padded_head_dim, padded(problem, blocks)[0], problem.group
    q = pl.BlockSpec((None, T, None, G, H), lambda j, n, b: (b, 0, n, 0, 0))
    k = pl.BlockSpec((None, blocks.keys, None, H), lambda j, n, b: (b, j, n, 0))
    row = pl.BlockSpec((None, None, G, T), lambda j, n, b: (b, n, 0, 0))
    line = _line_spec(refs, lambda j, n, b: (n, 0, 0))
    specs = Refs(
        q=q,
        k=k,
        v=k,
        line=line,
        factors=line,
        key_bias=_key_bias_spec(refs, None, lambda j, n, b: (b, n, 0, 0)),
        q_ids=pl.BlockSpec((None, T), lambda j, n, b: (b, 0)),
        kv_ids=pl.BlockSpec((None, blocks.keys), lambda j, n, b: (b, j)),
        offset=pl.BlockSpec((1,), lambda j, n, b: (0,)),
        rows=RowRefs(q, row, row, row),
    )
    return _present(specs, refs)


def specs_by_diagonal(problem: Problem, blocks: Blocks, refs: Refs) -> Refs:
    """For a grid (diagonals, heads)."""
    B, H, (T, S) = refs.q.shape[0], problem.padded_head_dim, padded(problem, blocks)
    q = pl.BlockSpec((B, T, None, H), lambda d, n: (0, 0, n, 0))
    k = pl.BlockSpec((B, S, None, H), lambda d, n: (0, 0, lax.div(n, problem.group), 0))
    row = pl.BlockSpec((B, None, T), lambda d, n: (0, n, 0))
    line = _line_spec(refs, lambda d, n: (n, 0, 0))
    specs = Refs(
        q=q,
        k=k,
        v=k,
        line=line,
        factors=line,
        key_bias=_key_bias_spec(refs, B, lambda d, n: (0, n, 0, 0)),
        q_ids=pl.BlockSpec((B, T), lambda d, n: (0, 0)),
        kv_ids=pl.BlockSpec((B, S), lambda d, n: (0, 0)),
        offset=pl.BlockSpec((1,), lambda d, n: (0,)),
        rows=RowRefs(q, row, row, row),
    )
    return _present(specs, refs)


def _line_spec(refs: Refs, index: Any) -> pl.BlockSpec | None:
    return None if refs.line is None else pl.BlockSpec((None, *refs.line.shape[1:]), index)


def _key_bias_spec(refs: Refs, batch: int | None, index: Any) -> pl.BlockSpec | None:
    """All keys, of one sequence or of a batch."""
    if refs.key_bias is None:
        return None
    return pl.BlockSpec((batch, None, *refs.key_bias.shape[2:]), index)
