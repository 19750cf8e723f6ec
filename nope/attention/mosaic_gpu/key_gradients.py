"""Kernel of `mosaic_gpu` for the gradients of k, v and the key bias; see `backward`.

It computes s^T and dP^T, so that P^T and ds^T are operands of the products dk = ds^T q and dv = P^T
dout as they lie in the registers. It runs through all query heads of a group, and so writes the
gradient of a key once. Several programs share a group if there are too few. Their gradients are
added afterwards, in float32 and always in the same order. Products run while their warpgroup
computes: dP while it takes exponentials, dv while it makes ds.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from nope.attention.blocks import sweep
from nope.attention.flash import Wanted
from nope.attention.mosaic_gpu.arrays import Arrays
from nope.attention.mosaic_gpu.backward import apart_for_registers, two_products
from nope.attention.mosaic_gpu.parts import (
    BY_COLUMN,
    BY_ROW,
    COMPUTE,
    COMPUTE_REGISTERS,
    MEMORY,
    MEMORY_REGISTERS,
    ROWS,
    TILE,
    HopperRefs,
    HopperShape,
    Tile,
    by_column,
    by_row,
    grid,
    ids_of,
    launch,
    load,
    load_global,
    load_slot,
    plgpu,
    store,
    tile_of_keys,
    tiles,
    visible,
    weigh,
    with_alibi,
    zeros,
)

# Two for each of an H100's or H200's 132 multiprocessors, rounded to a power of two.
ENOUGH_PROGRAMS = 256


def key_gradients(
    shape: HopperShape,
    arrays: Arrays,
    d_out_BTNH: jax.Array,
    rows_BNRT: jax.Array,
    *,
    wanted: Wanted,
) -> dict[str, jax.Array]:
    """'d_k' and 'd_v', [B, S, K, H]; where wanted 'd_key_bias', float32 [B, N, S]."""
    block, stages = shape.step, shape.stages(held=2 * TILE)
    R, segmented = rows_BNRT.shape[2], shape.segmented
    share = sharing(shape)
    B, S, K, H = arrays.k.shape
    gradient = jax.ShapeDtypeStruct(
        (B, S, K * share, H), arrays.k.dtype if share == 1 else jnp.float32
    )
    by_key = jax.ShapeDtypeStruct((shape.batch, shape.heads, shape.keys), jnp.float32)
    results = launch(
        attention_key_gradients,
        shape,
        grid=grid(shape, K * share, shape.keys // TILE),
        inputs={**arrays._asdict(), 'd_out': d_out_BTNH, 'rows': rows_BNRT},
        outputs={
            'd_k': gradient,
            'd_v': gradient,
            'd_key_bias': by_key if wanted.key_bias else None,
        },
        scratch={
            'k_smem': tiles(shape, COMPUTE, ROWS),
            'v_smem': tiles(shape, COMPUTE, ROWS),
            'q_smem': tiles(shape, stages, block),
            'd_out_smem': tiles(shape, stages, block),
            'rows_smem': plgpu.SMEM((stages, R, block), jnp.float32),
            'ids_smem': plgpu.SMEM((stages, block), jnp.int32) if segmented else None,
            'sums_smem': plgpu.SMEM((COMPUTE, ROWS), jnp.float32) if wanted.key_bias else None,
            'kv_ready': plgpu.Barrier(num_arrivals=2, num_barriers=COMPUTE),
            'ready': plgpu.Barrier(num_arrivals=3 + segmented, num_barriers=stages),
            'free': plgpu.Barrier(num_arrivals=COMPUTE, num_barriers=stages),
        },
    )
    if share > 1:
        for name in ('d_k', 'd_v'):
            parts_BSKPH = results[name].reshape(B, S, K, share, H)
            results[name] = parts_BSKPH.sum(axis=3).astype(arrays.k.dtype)
    return results


def sharing(shape: HopperShape) -> int:
    """Number of programs for a tile of keys, which divide the heads of the group. It is the
    smallest that gives every multiprocessor two programs. Under a causal rule the longest program
    takes twice the mean, and with fewer the others would wait for it."""
    programs = shape.batch * shape.kv_heads * (shape.keys // TILE)
    parts = [n for n in range(1, shape.group + 1) if shape.group % n == 0]
    return next((n for n in parts if programs * n >= ENOUGH_PROGRAMS), shape.group)


def attention_key_gradients(shape: HopperShape, refs: HopperRefs) -> None:
    """A tile of keys of one key/value head, against the query heads of its group in turn."""
    tile = tile_of_keys(shape, refs.offset)
    members = shape.kv_heads * shape.group // lax.axis_size('head')
    first_head = tile.head * members
    run = Run(first_head, members, lax.div(first_head, jnp.int32(shape.group)))
    pl.when(tile.wg == MEMORY)(lambda: _copy(shape, refs, tile, run))
    pl.when(tile.wg < COMPUTE)(lambda: _compute(shape, refs, tile, run))


class Run(NamedTuple):
    """Query heads that a program runs through: so many members of the group of a key/value head,
    from the first on."""

    first_head: jax.Array
    members: int
    kv_head: jax.Array

    def slot_of(self, refs: HopperRefs, tile: Tile, member: jax.Array, i: jax.Array) -> jax.Array:
        return lax.rem(self.turn_of(tile, member, i), jnp.int32(refs.q_smem.shape[0]))

    def turn_of(self, tile: Tile, member: jax.Array, i: jax.Array) -> jax.Array:
        """Number of a query block among all that are worked on."""
        return member * (tile.seen.end - tile.seen.begin) + i - tile.seen.begin


def _copy(shape: HopperShape, refs: HopperRefs, tile: Tile, run: Run) -> None:
    """The keys and values once, and what there is of one block of queries after the other."""
    block, stages = shape.step, refs.q_smem.shape[0]
    batch, seen, copy = tile.batch, tile.seen, plgpu.copy_gmem_to_smem
    plgpu.set_max_registers(MEMORY_REGISTERS, action='decrease')
    for w in range(COMPUTE):
        at = (batch, tile.rows(w), run.kv_head)
        copy(refs.k.at[at], refs.k_smem.at[w], refs.kv_ready.at[w])
        copy(refs.v.at[at], refs.v_smem.at[w], refs.kv_ready.at[w])

    def fetch(member, i):
        turn, queries = run.turn_of(tile, member, i), pl.ds(i * block, block)
        slot, head = lax.rem(turn, jnp.int32(stages)), run.first_head + member
        pl.when(turn >= stages)(lambda: plgpu.barrier_wait(refs.free.at[slot]))
        filled = refs.ready.at[slot]
        copy(refs.q.at[batch, queries, head], refs.q_smem.at[slot], filled)
        copy(refs.d_out.at[batch, queries, head], refs.d_out_smem.at[slot], filled)
        copy(refs.rows.at[batch, head, :, queries], refs.rows_smem.at[slot], filled)
        if refs.q_ids is not None:
            copy(refs.q_ids.at[batch, queries], refs.ids_smem.at[slot], filled)

    @pl.loop(0, run.members)
    def each(member):
        pl.loop(seen.begin, seen.end)(lambda i: fetch(member, i))


def _compute(shape: HopperShape, refs: HopperRefs, tile: Tile, run: Run) -> None:
    """dk and dv of a warpgroup's keys, and the key bias's gradient of each head."""
    batch, _, wg, _, _, seen = tile
    plgpu.set_max_registers(COMPUTE_REGISTERS, action='increase')
    kv_ids_S = ids_of(refs.kv_ids, tile)
    plgpu.barrier_wait(refs.kv_ready.at[wg])

    def head(member, sums):
        def here():
            return batch, run.first_head + member, tile.rows(wg)

        line_S = None
        if refs.key_bias is not None:
            line_S = load_global(refs.key_bias.at[here()])
        slope = None if refs.slopes is None else refs.slopes[run.first_head + member]
        # Padded queries add nothing, whatever they see; see `stack_rows`.
        one = functools.partial(_step, shape, refs, tile, run, member, line_S, slope, kv_ids_S)
        if refs.d_key_bias is not None:
            sums = (*sums, zeros(ROWS))
        d_v_SH, d_k_SH, *by_key = sweep(seen, one, sums, cut_all=shape.segmented)
        for x in by_key:
            store(x, refs.sums_smem.at[wg], refs.d_key_bias.at[here()])
        return d_v_SH, d_k_SH

    start = zeros(ROWS, shape.head_dim), zeros(ROWS, shape.head_dim)
    d_v_SH, d_k_SH = lax.fori_loop(0, run.members, head, start)
    at = batch, tile.rows(wg), tile.head
    if run.members < shape.group:
        refs.d_k.at[at][...] = d_k_SH
        refs.d_v.at[at][...] = d_v_SH
        return
    refs.k_smem.at[wg][...] = d_k_SH.astype(shape.dtype)
    refs.v_smem.at[wg][...] = d_v_SH.astype(shape.dtype)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(refs.k_smem.at[wg], refs.d_k.at[at])
    plgpu.copy_smem_to_gmem(refs.v_smem.at[wg], refs.d_v.at[at])
    plgpu.wait_smem_to_gmem(0)


def _step(shape, refs, tile, run, member, line_S, slope, kv_ids_S, i, sums, cut):
    """Sums with those of query block i added."""
    block, wg, R = shape.step, tile.wg, refs.rows.shape[2]
    size = (ROWS, block)
    # dv's product while ds is computed, unless there are too few registers.
    apart = apart_for_registers(shape, refs)
    early = shape.head_dim == 64 or (R == 2 and not apart)
    d_v_SH, d_k_SH, *by_key = sums
    slot = run.slot_of(refs, tile, member, i)
    plgpu.barrier_wait(refs.ready.at[slot])
    queries, d_out = refs.q_smem.at[slot], refs.d_out_smem.at[slot]

    def firsts():
        """Positions of the block's first query and key."""
        return tile.position + i * block, tile.number * TILE + wg * ROWS

    def numbers():
        by_query = (load(shape, refs.rows_smem.at[slot, r], BY_COLUMN) for r in range(R))
        return [by_column(x, size) for x in by_query]

    def score(logits_ST):
        bias_S = line_S
        if slope is not None:
            q_first, k_first = firsts()
            from_tile = k_first - q_first + lax.rem(i * block, jnp.int32(TILE))
            bias_S = with_alibi(line_S, slope, ROWS, from_tile, BY_ROW)
        if bias_S is not None:
            logits_ST += by_row(bias_S, size)
        seen_ST = None
        if cut:
            ids_T = load_slot(shape, refs.ids_smem, slot)
            q_first, k_first = firsts()
            seen_ST = visible(shape, size, 1, q_first, k_first, ids_T, kv_ids_S)
        return logits_ST, seen_ST

    def pull(weights_ST, d_logits):
        half_ST = weights_ST.astype(shape.dtype)

        def half_and_sums(n):
            """ds in half precision, and the sums by key with it added."""
            d_ST = d_logits(n)
            sums = [x + jnp.sum(d_ST, axis=1) for x in by_key]
            return d_ST.astype(shape.dtype), sums

        late = None if early else half_and_sums(0)

        def pull_keys(d_v):
            d_logits_ST, by_key = half_and_sums(1) if late is None else late
            return weigh(
                shape, d_logits_ST, queries, lambda d_k: (d_v(0), d_k(0), *by_key), onto=d_k_SH
            )

        return weigh(shape, half_ST, d_out, pull_keys, onto=d_v_SH)

    sums = two_products(
        shape, refs.k_smem.at[wg], queries, refs.v_smem.at[wg], d_out, numbers, score, pull,
        apart=apart,
    )  # fmt: skip
    plgpu.barrier_arrive(refs.free.at[slot])
    return sums
