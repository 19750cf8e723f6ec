"""Launch of the TPU kernels: the grid of a schedule, and every array's block at each step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nope.attention.pallas_tpu.arrays import Arrays, Shape
from nope.attention.pallas_tpu.programs import GridStep, Refs
from nope.attention.pallas_tpu.schedule import by_key as by_key_blocks
from nope.attention.pallas_tpu.schedule import by_query as by_query_blocks
from nope.attention.pallas_tpu.sizes import KEPT_BYTES
from nope.runtime.libraries import pl, pltpu

# Of vector memory, next to sums that are kept: twice what a kernel of a v5e has by default.
_STEP_BYTES = 32 * 2**20


def stat(shape: Shape) -> Any:
    return pltpu.VMEM((1, shape.row_block), jnp.float32)


def _spec(
    shape: Shape, block: tuple[int | None, ...], index: Callable[..., Any], *, by_key: bool
) -> pl.BlockSpec:
    """index: from batch, head, key/value head, query block and key block to a place."""
    G = shape.groups

    def at(b, n, p, *rest):
        if by_key:
            g, q_P, k_P, _ = rest
            return index(b, n * G + g, n, q_P[p], k_P[p])
        q_P, k_P, _ = rest
        return index(b, n, n // G, q_P[p], k_P[p])

    return pl.BlockSpec(block, at)


def q_spec(shape: Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, shape.row_block, shape.head_dim)
    return _spec(shape, block, lambda b, n, k, i, j: (b, n, i, 0), by_key=by_key)


def k_spec(shape: Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, shape.plan.k_block, shape.head_dim)
    return _spec(shape, block, lambda b, n, k, i, j: (b, k, j, 0), by_key=by_key)


def row_spec(shape: Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, 1, shape.row_block)
    return _spec(shape, block, lambda b, n, k, i, j: (b, n, 0, i), by_key=by_key)


def group_spec(shape: Shape) -> pl.BlockSpec:
    """By key, one row for each head of a group."""
    block = (None, None, shape.groups, shape.plan.k_block)
    return _spec(shape, block, lambda b, n, k, i, j: (b, k, 0, j), by_key=True)


def kept_spec(shape: Shape, block: tuple[int | None, ...]) -> pl.BlockSpec:
    """By query, a whole key/value head's: one that stays while the heads of its group pass."""
    return pl.BlockSpec(
        block, lambda b, n, *_: (b, n // shape.groups, 0, 0), pipeline_mode=pl.Buffered(1)
    )


def _inputs(shape: Shape, arrays: Arrays, *, by_key: bool) -> tuple[Refs, Refs]:
    """(arrays, block specs), None where there is none."""
    q, k, row = (make(shape, by_key=by_key) for make in (q_spec, k_spec, row_spec))
    spec = functools.partial(_spec, shape, by_key=by_key)
    R, S, last = shape.row_block, shape.plan.k_block, shape.plan.k_blocks - 1
    low = spec((None, 1, R), lambda b, n, k, i, j: (n, 0, i + last - j))
    high = spec((None, 1, R), lambda b, n, k, i, j: (n, 0, i + last - j + 1))
    specs = Refs(
        q, k, k, low, high, low, high,
        spec((None, None, 1, S), lambda b, n, k, i, j: (b, n, 0, j)),
        spec((None, 1, R), lambda b, n, k, i, j: (b, 0, i)),
        spec((None, 1, S), lambda b, n, k, i, j: (b, 0, j)),
        spec((1, R), lambda b, n, k, i, j: (0, i)),
        q, row, row, row,
    )  # fmt: skip
    a = arrays
    return Refs(
        a.q_BKRH, a.k_BKSH, a.v_BKSH, a.line_N1D, a.line_N1D, a.factors_N1D, a.factors_N1D,
        a.key_bias_BN1S, a.q_ids_B1R, a.kv_ids_B1S, a.at_1R,
        a.d_out_BKRH, a.lse_BK1R, a.c_BK1R, a.d_entropy_BK1R,
    ), specs  # fmt: skip


def run(
    shape: Shape,
    kernel: Callable[..., None],
    arrays: Arrays,
    *,
    by_key: bool,
    outputs: list[jax.ShapeDtypeStruct],
    out_specs: list[pl.BlockSpec],
    scratch: list[Any],
) -> list[jax.Array]:
    """kernel(shape, step, refs, output refs, scratch refs) over the steps by key or by query."""
    static = shape.rules.offset
    schedule = by_key_blocks if by_key else by_query_blocks
    tables = schedule(shape.plan, arrays.offset if static is None else static)
    given, specs = _inputs(shape, arrays, by_key=by_key)
    present = [i for i, array in enumerate(given) if array is not None]

    def body(q_P, k_P, flags_P, *refs):
        p = pl.program_id(2)
        g = pl.program_id(3) if by_key else jax.lax.rem(pl.program_id(1), shape.groups)
        step = GridStep(p, q_P[p], k_P[p], flags_P[p], g, shape.groups, by_key)
        named: list[Any] = [None] * len(given)
        for i, ref in zip(present, refs, strict=False):
            named[i] = ref
        others = refs[len(present) :]
        kernel(shape, step, Refs(*named), others[: len(outputs)], others[len(outputs) :])

    heads = shape.kv_heads if by_key or shape.folded else shape.heads
    # Heads of a group share the sums of one kernel backward: these go in order.
    of_heads = 'arbitrary' if shape.fused and shape.groups > 1 else 'parallel'
    semantics: list[Any] = ['parallel', of_heads, 'arbitrary', 'arbitrary']
    grid = (shape.batch, heads, tables.q_P.shape[0], *((shape.groups,) if by_key else ()))
    return pl.pallas_call(
        body,
        out_shape=outputs,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3,
            grid=grid,
            in_specs=[specs[i] for i in present],
            out_specs=out_specs,
            scratch_shapes=scratch,
        ),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=semantics[: len(grid)],
            vmem_limit_bytes=KEPT_BYTES + _STEP_BYTES if shape.fused else None,
        ),
        interpret=shape.interpret,
        name=kernel.__name__,
    )(*tables, *(given[i] for i in present))
