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
    BY_ROW,
    COMPUTE,
    COMPUTE_REGISTERS,
    MEMORY,
    MEMORY_REGISTERS,
    ROWS,
    TILE,
    Shape,
    biased,
    by_row,
    grid,
    launch,
    load_global,
    load_slot,
    plgpu,
    tile_of_queries,
    tiles,
    visible,
    weigh,
    zeros,
)


def query_gradient(
    shape: Shape, arrays: Arrays, d_out_BTNH: jax.Array, rows_BNRT: jax.Array
) -> jax.Array:
    """dq, [B, T, N, H]."""
    block, stages = shape.blocks.step, shape.stages(held=2 * TILE)
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


def attention_query_gradient(
    shape, *, q, k, v, d_out, rows, d_q, q_smem, d_out_smem, k_smem, v_smem, q_ready, ready, free,
    key_bias=None, bias_smem=None, slopes=None, q_ids=None, kv_ids=None, ids_smem=None,
    offset=None,
):  # fmt: skip
    """A tile of queries of one head."""
    block, stages = shape.blocks.step, k_smem.shape[0]
    tile = tile_of_queries(shape, offset)
    batch, head, wg, _, position, seen = tile

    def slot_of(j):
        return lax.rem(j - seen.begin, jnp.int32(stages))

    @pl.when(wg == MEMORY)
    def copy():
        plgpu.set_max_registers(MEMORY_REGISTERS, action='decrease')
        for w in range(COMPUTE):
            at = (batch, tile.rows(w), head)
            plgpu.copy_gmem_to_smem(q.at[at], q_smem.at[w], q_ready.at[w])
            plgpu.copy_gmem_to_smem(d_out.at[at], d_out_smem.at[w], q_ready.at[w])
        kv_head = lax.div(head, jnp.int32(shape.group))

        def fetch(j, _):
            slot, keys = slot_of(j), pl.ds(j * block, block)
            used = j - seen.begin >= stages
            pl.when(used)(lambda: plgpu.barrier_wait(free.at[slot]))
            plgpu.copy_gmem_to_smem(k.at[batch, keys, kv_head], k_smem.at[slot], ready.at[slot])
            plgpu.copy_gmem_to_smem(v.at[batch, keys, kv_head], v_smem.at[slot], ready.at[slot])
            if key_bias is not None:
                line = key_bias.at[batch, head, keys]
                plgpu.copy_gmem_to_smem(line, bias_smem.at[slot], ready.at[slot])
            if kv_ids is not None:
                plgpu.copy_gmem_to_smem(kv_ids.at[batch, keys], ids_smem.at[slot], ready.at[slot])

        lax.fori_loop(seen.begin, seen.end, fetch, None)

    @pl.when(wg < COMPUTE)
    def compute():
        plgpu.set_max_registers(COMPUTE_REGISTERS, action='increase')
        size, apart = (ROWS, block), apart_for_registers(shape, key_bias, slopes)
        by_query = [
            load_global(rows.at[batch, head, r, tile.rows(wg)], BY_ROW)
            for r in range(rows.shape[2])
        ]
        slope = None if slopes is None else slopes[head]
        q_ids_T = None
        if q_ids is not None:
            q_ids_T = load_global(q_ids.at[batch, tile.rows(wg)], BY_ROW)
        plgpu.barrier_wait(q_ready.at[wg])

        def numbers():
            return [by_row(x, size) for x in by_query]

        def step(j, d_q_TH, cut):
            slot = slot_of(j)
            plgpu.barrier_wait(ready.at[slot])
            keys, values = k_smem.at[slot], v_smem.at[slot]

            def score(logits_TS):
                logits_TS = biased(
                    shape, logits_TS, bias_smem, slot, slope, lambda: j * block - position
                )
                seen_TS = None
                if cut:
                    ids_S = load_slot(shape, ids_smem, slot)
                    q_first, k_first = position + wg * ROWS, j * block
                    seen_TS = visible(shape, size, 0, q_first, k_first, q_ids_T, ids_S)
                return logits_TS, seen_TS

            def pull(_, d_logits):
                d_logits_TS = d_logits(0).astype(shape.dtype)
                return weigh(shape, d_logits_TS, keys, lambda value: value(0), onto=d_q_TH)

            d_q_TH = two_products(
                shape, q_smem.at[wg], keys, d_out_smem.at[wg], values, numbers, score, pull,
                apart=apart,
            )  # fmt: skip
            plgpu.barrier_arrive(free.at[slot])
            return d_q_TH

        d_q_TH = sweep(seen, step, zeros(ROWS, shape.head_dim), cut_all=shape.segmented)
        q_smem.at[wg][...] = d_q_TH.astype(shape.dtype)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(q_smem.at[wg], d_q.at[batch, tile.rows(wg), head])
        plgpu.wait_smem_to_gmem(0)
