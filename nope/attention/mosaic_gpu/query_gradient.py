"""Kernel of `mosaic_gpu` for the gradient of q: dq = ds k; see `backward`.

dP runs while its warpgroup takes exponentials, unless there are too few registers.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from nope.attention.blocks import sweep
from nope.attention.mosaic_gpu.arrays import Arrays
from nope.attention.mosaic_gpu.backward import apart_for_registers, two_products
from nope.attention.mosaic_gpu.parts import (
    COMPUTE,
    COMPUTE_REGISTERS,
    MEMORY,
    MEMORY_REGISTERS,
    ROWS,
    TILE,
    HopperRefs,
    HopperShape,
    Tile,
    biased,
    by_row,
    grid,
    ids_of,
    launch,
    load_global,
    load_slot,
    plgpu,
    slope_of,
    tile_of_queries,
    tiles,
    visible,
    weigh,
    zeros,
)


def query_gradient(
    shape: HopperShape, arrays: Arrays, d_out_BTNH: jax.Array, rows_BNRT: jax.Array
) -> jax.Array:
    """dq, [B, T, N, H]."""
    block, stages = shape.step, shape.stages(held=2 * TILE)
    lined, segmented = arrays.key_bias is not None, shape.segmented
    results = launch(
        attention_query_gradient,
        shape,
        grid=grid(shape, shape.heads, shape.queries // TILE),
        inputs={**arrays._asdict(), 'd_out': d_out_BTNH, 'rows': rows_BNRT},
        outputs={'d_q': jax.ShapeDtypeStruct(arrays.q.shape, arrays.q.dtype)},
        scratch={
            'q_smem': tiles(shape, COMPUTE, ROWS),
            'd_out_smem': tiles(shape, COMPUTE, ROWS),
            'k_smem': tiles(shape, stages, block),
            'v_smem': tiles(shape, stages, block),
            'bias_smem': plgpu.SMEM((stages, block), jnp.float32) if lined else None,
            'ids_smem': plgpu.SMEM((stages, block), jnp.int32) if segmented else None,
            'q_ready': plgpu.Barrier(num_arrivals=2, num_barriers=COMPUTE),
            'ready': plgpu.Barrier(num_arrivals=2 + lined + segmented, num_barriers=stages),
            'free': plgpu.Barrier(num_arrivals=COMPUTE, num_barriers=stages),
        },
    )
    return results['d_q']


def attention_query_gradient(shape: HopperShape, refs: HopperRefs) -> None:
    """A tile of queries of one head."""
    tile = tile_of_queries(shape, refs.offset)
    pl.when(tile.wg == MEMORY)(lambda: _copy(shape, refs, tile))
    pl.when(tile.wg < COMPUTE)(lambda: _compute(shape, refs, tile))


def _copy(shape: HopperShape, refs: HopperRefs, tile: Tile) -> None:
    """q and dout once, and the keys and values of one block after the other."""
    block, stages = shape.step, refs.k_smem.shape[0]
    batch, head, _, _, _, seen = tile
    copy = plgpu.copy_gmem_to_smem
    plgpu.set_max_registers(MEMORY_REGISTERS, action='decrease')
    for w in range(COMPUTE):
        at = (batch, tile.rows(w), head)
        copy(refs.q.at[at], refs.q_smem.at[w], refs.q_ready.at[w])
        copy(refs.d_out.at[at], refs.d_out_smem.at[w], refs.q_ready.at[w])
    kv_head = lax.div(head, jnp.int32(shape.group))

    def fetch(j, _):
        slot, keys = lax.rem(j - seen.begin, jnp.int32(stages)), pl.ds(j * block, block)
        used, filled = j - seen.begin >= stages, refs.ready.at[slot]
        pl.when(used)(lambda: plgpu.barrier_wait(refs.free.at[slot]))
        copy(refs.k.at[batch, keys, kv_head], refs.k_smem.at[slot], filled)
        copy(refs.v.at[batch, keys, kv_head], refs.v_smem.at[slot], filled)
        if refs.key_bias is not None:
            copy(refs.key_bias.at[batch, head, keys], refs.bias_smem.at[slot], filled)
        if refs.kv_ids is not None:
            copy(refs.kv_ids.at[batch, keys], refs.ids_smem.at[slot], filled)

    lax.fori_loop(seen.begin, seen.end, fetch, None)


def _compute(shape: HopperShape, refs: HopperRefs, tile: Tile) -> None:
    """dq of a warpgroup's rows."""
    block, stages = shape.step, refs.k_smem.shape[0]
    batch, head, wg, _, position, seen = tile
    plgpu.set_max_registers(COMPUTE_REGISTERS, action='increase')
    size, apart = (ROWS, block), apart_for_registers(shape, refs)
    by_query = [
        load_global(refs.rows.at[batch, head, r, tile.rows(wg)]) for r in range(refs.rows.shape[2])
    ]
    slope, q_ids_T = slope_of(refs, head), ids_of(refs.q_ids, tile)
    plgpu.barrier_wait(refs.q_ready.at[wg])

    def numbers():
        return [by_row(x, size) for x in by_query]

    def step(j, d_q_TH, cut):
        slot = lax.rem(j - seen.begin, jnp.int32(stages))
        plgpu.barrier_wait(refs.ready.at[slot])
        keys, values = refs.k_smem.at[slot], refs.v_smem.at[slot]

        def score(logits_TS):
            logits_TS = biased(
                shape, logits_TS, refs.bias_smem, slot, slope, lambda: j * block - position
            )
            seen_TS = None
            if cut:
                ids_S = load_slot(shape, refs.ids_smem, slot)
                q_first, k_first = position + wg * ROWS, j * block
                seen_TS = visible(shape, size, 0, q_first, k_first, q_ids_T, ids_S)
            return logits_TS, seen_TS

        def pull(_, d_logits):
            d_logits_TS = d_logits(0).astype(shape.dtype)
            return weigh(shape, d_logits_TS, keys, lambda value: value(0), onto=d_q_TH)

        d_q_TH = two_products(
            shape, refs.q_smem.at[wg], keys, refs.d_out_smem.at[wg], values, numbers, score, pull,
            apart=apart,
        )  # fmt: skip
        plgpu.barrier_arrive(refs.free.at[slot])
        return d_q_TH

    d_q_TH = sweep(seen, step, zeros(ROWS, shape.head_dim), cut_all=shape.segmented)
    refs.q_smem.at[wg][...] = d_q_TH.astype(shape.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(refs.q_smem.at[wg], refs.d_q.at[batch, tile.rows(wg), head])
    plgpu.wait_smem_to_gmem(0)
