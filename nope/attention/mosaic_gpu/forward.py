"""Forward kernel of `mosaic_gpu`: online softmax with the entropy's running sum.

FlashAttention-3 (Shah et al., 2024, arXiv:2407.08608): the two warpgroups take turns, one has the
tensor cores while the other does its softmax, and the weights go from registers to the tensor
cores. Within a warpgroup the softmax of a block runs beside the product of the weights of the block
before with their values. The entropy needs one more multiply-add per logit next to a maximum, a
multiply-add, an exponential, an addition and a conversion.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

from nope.attention.blocks import module_of, sweep
from nope.attention.flash import FLOOR, HIDDEN
from nope.attention.mosaic_gpu.arrays import Arrays
from nope.attention.mosaic_gpu.parts import (
    COMPUTE,
    COMPUTE_REGISTERS,
    LN2,
    LOG2E,
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
    load_slot,
    plgpu,
    product,
    slope_of,
    tile_of_queries,
    tiles,
    visible,
    weigh,
    zeros,
)


def forward(
    shape: HopperShape, arrays: Arrays
) -> tuple[jax.Array, jax.Array, jax.Array | None, jax.Array | None]:
    """out [B, T, N, H], lse, entropy and largest logit [B, N, T]."""
    block, stages = shape.step, shape.stages(held=TILE)
    rows = jax.ShapeDtypeStruct((shape.batch, shape.heads, shape.queries), jnp.float32)
    rows_smem = plgpu.SMEM((COMPUTE, ROWS), jnp.float32)
    lined, segmented = arrays.key_bias is not None, shape.segmented
    entropy, max_logit = shape.rules.entropy, shape.rules.max_logit
    results = launch(
        attention_forward,
        shape,
        grid=grid(shape, shape.heads, shape.queries // TILE),
        inputs=arrays._asdict(),
        outputs={
            'out': jax.ShapeDtypeStruct(arrays.q.shape, arrays.q.dtype),
            'lse': rows,
            'entropy': rows if entropy else None,
            'max_logit': rows if max_logit else None,
        },
        scratch={
            'q_smem': tiles(shape, COMPUTE, ROWS),
            'k_smem': tiles(shape, stages, block),
            'v_smem': tiles(shape, stages, block),
            'bias_smem': plgpu.SMEM((stages, block), jnp.float32) if lined else None,
            'ids_smem': plgpu.SMEM((stages, block), jnp.int32) if segmented else None,
            'lse_smem': rows_smem,
            'entropy_smem': rows_smem if entropy else None,
            'max_smem': rows_smem if max_logit else None,
            'q_ready': plgpu.Barrier(num_barriers=COMPUTE),
            'k_ready': plgpu.Barrier(num_arrivals=1 + lined + segmented, num_barriers=stages),
            'v_ready': plgpu.Barrier(num_barriers=stages),
            'k_free': plgpu.Barrier(num_arrivals=COMPUTE, num_barriers=stages),
            'v_free': plgpu.Barrier(num_arrivals=COMPUTE, num_barriers=stages),
            'turn': plgpu.Barrier(num_arrivals=COMPUTE),
        },
    )
    return results['out'], results['lse'], results.get('entropy'), results.get('max_logit')


def attention_forward(shape: HopperShape, refs: HopperRefs) -> None:
    """A tile of queries of one head."""
    tile = tile_of_queries(shape, refs.offset)
    pl.when(tile.wg == MEMORY)(lambda: _copy(shape, refs, tile))
    pl.when(tile.wg < COMPUTE)(lambda: _compute(shape, refs, tile))


def _slot(refs: HopperRefs, tile: Tile, j: jax.Array) -> jax.Array:
    return lax.rem(j - tile.seen.begin, jnp.int32(refs.k_smem.shape[0]))


def _copy(shape: HopperShape, refs: HopperRefs, tile: Tile) -> None:
    """The queries once, and the keys and values of one block after the other."""
    block, stages = shape.step, refs.k_smem.shape[0]
    batch, head, _, _, _, seen = tile
    copy = plgpu.copy_gmem_to_smem
    plgpu.set_max_registers(MEMORY_REGISTERS, action='decrease')
    for w in range(COMPUTE):
        copy(refs.q.at[batch, tile.rows(w), head], refs.q_smem.at[w], refs.q_ready.at[w])
    kv_head = lax.div(head, jnp.int32(shape.group))

    def fetch(j, _):
        slot, keys = _slot(refs, tile, j), pl.ds(j * block, block)
        used, filled = j - seen.begin >= stages, refs.k_ready.at[slot]
        pl.when(used)(lambda: plgpu.barrier_wait(refs.k_free.at[slot]))
        copy(refs.k.at[batch, keys, kv_head], refs.k_smem.at[slot], filled)
        if refs.key_bias is not None:
            copy(refs.key_bias.at[batch, head, keys], refs.bias_smem.at[slot], filled)
        if refs.kv_ids is not None:
            copy(refs.kv_ids.at[batch, keys], refs.ids_smem.at[slot], filled)
        pl.when(used)(lambda: plgpu.barrier_wait(refs.v_free.at[slot]))
        copy(refs.v.at[batch, keys, kv_head], refs.v_smem.at[slot], refs.v_ready.at[slot])

    lax.fori_loop(seen.begin, seen.end, fetch, None)


def _softmax(shape, refs, tile, j, logits_TS, cut, rows, slope, q_ids_T):
    """The weights of block j, the factor of those before, and the row's sums."""
    block, slot = shape.step, _slot(refs, tile, j)
    size, (max_T, norm_T, energy_T) = (ROWS, block), rows
    logits_TS = biased(
        shape, logits_TS, refs.bias_smem, slot, slope, lambda: j * block - tile.position
    )
    if cut:
        ids_S = load_slot(shape, refs.ids_smem, slot)
        first = tile.position + tile.wg * ROWS
        seen_TS = visible(shape, size, 0, first, j * block, q_ids_T, ids_S)
        logits_TS = jnp.where(seen_TS, logits_TS, HIDDEN)
    plgpu.barrier_arrive(refs.k_free.at[slot])
    # In units of ln 2 from here on.
    new_max_T = jnp.maximum(max_T, jnp.max(logits_TS, axis=1) * LOG2E)
    moved_T = max_T - new_max_T
    decay_T = jnp.exp2(moved_T)
    shifted_TS = logits_TS * LOG2E - by_row(new_max_T, size)
    weights_TS = jnp.exp2(shifted_TS)
    if energy_T is not None:
        # sum_j p_j (s_j - m); its old terms get the new maximum.
        energy_T = decay_T * (energy_T + norm_T * moved_T)
        energy_T += jnp.sum(weights_TS * shifted_TS, axis=1)
    norm_T = norm_T * decay_T + jnp.sum(weights_TS, axis=1)
    return weights_TS, decay_T, (new_max_T, norm_T, energy_T)


def _compute(shape: HopperShape, refs: HopperRefs, tile: Tile) -> None:
    """Rows of a warpgroup: their weights block after block, and the values under them."""
    _, head, wg, _, _, seen = tile
    plgpu.set_max_registers(COMPUTE_REGISTERS, action='increase')
    slope, q_ids_T = slope_of(refs, head), ids_of(refs.q_ids, tile)
    plgpu.barrier_wait(refs.q_ready.at[wg])
    queries = refs.q_smem.at[wg]

    def softmax(j, logits_TS, cut, rows):
        return _softmax(shape, refs, tile, j, logits_TS, cut, rows, slope, q_ids_T)

    def take_turns():
        plgpu.barrier_arrive(refs.turn)
        plgpu.barrier_wait(refs.turn)

    def wait_for_keys(j):
        ready = refs.k_ready
        pl.when(j < seen.end)(lambda: plgpu.barrier_wait(ready.at[_slot(refs, tile, j)]))

    def first(j, carry):
        """Weights of the first block: there are no values to weigh meanwhile."""
        total_TH, _, rows = carry
        slot = _slot(refs, tile, j)

        def weights(logits):
            take_turns()
            return softmax(j, logits(0), shape.segmented or any(seen.cut), rows)

        plgpu.barrier_wait(refs.k_ready.at[slot])
        weights_TS, _, rows = product(shape, queries, refs.k_smem.at[slot], weights)
        plgpu.barrier_arrive(refs.turn)
        wait_for_keys(j + 1)
        plgpu.barrier_wait(refs.turn)
        return total_TH, weights_TS.astype(shape.dtype), rows

    def step(j, carry, cut):
        """Weights of a block, while the tensor cores weigh the values of the one before."""
        total_TH, half_TS, rows = carry
        slot, before = _slot(refs, tile, j), _slot(refs, tile, j - 1)

        def weights(logits):
            plgpu.barrier_wait(refs.v_ready.at[before])

            def softmax_meanwhile(total):
                take_turns()
                weights_TS, decay_T, new_rows = softmax(j, logits(1), cut, rows)
                # The assembler moves the next wait up, but not across this branch.
                wait_for_keys(j + 1)
                new_total_TH = total(0)
                plgpu.barrier_arrive(refs.v_free.at[before])
                plgpu.barrier_arrive(refs.turn)
                # Not sooner: those before are an operand until then.
                new_half_TS = weights_TS.astype(shape.dtype)
                new_total_TH *= by_row(decay_T, new_total_TH.shape)
                plgpu.barrier_wait(refs.turn)
                return new_total_TH, new_half_TS, new_rows

            return weigh(shape, half_TS, refs.v_smem.at[before], softmax_meanwhile, total_TH)

        return product(shape, queries, refs.k_smem.at[slot], weights)

    def last(j, carry):
        """The values of the last block."""
        total_TH, half_TS, rows = carry
        slot = _slot(refs, tile, j)

        def weighed(total):
            take_turns()
            return total(0)

        plgpu.barrier_wait(refs.v_ready.at[slot])
        total_TH = weigh(shape, half_TS, refs.v_smem.at[slot], weighed, total_TH)
        take_turns()
        return total_TH, half_TS, rows

    energy_T = zeros(ROWS) if shape.rules.entropy else None
    rows = zeros(ROWS) + FLOOR, zeros(ROWS), energy_T
    total_TH = zeros(ROWS, shape.head_dim)
    carry = total_TH, zeros(ROWS, shape.step).astype(shape.dtype), rows
    xp = module_of(seen.begin, seen.end)
    second = xp.minimum(seen.begin + 1, seen.end)
    pl.when(wg == 1)(take_turns)
    carry = lax.fori_loop(seen.begin, second, first, carry)
    carry = sweep(seen.within(second, seen.end), step, carry, cut_all=shape.segmented)
    carry = lax.fori_loop(xp.maximum(seen.end - 1, seen.begin), seen.end, last, carry)
    total_TH, _, rows = carry
    pl.when(wg == 0)(take_turns)
    _write(shape, refs, tile, total_TH, rows)


def _write(shape, refs, tile, total_TH, rows):
    """A warpgroup's outputs."""
    batch, head, wg, *_ = tile
    max_T, norm_T, energy_T = rows
    any_T = norm_T > 0
    norm_T = jnp.where(any_T, norm_T, 1.0)
    share_T, log_T = 1 / norm_T, jnp.log(norm_T)
    refs.q_smem.at[wg][...] = (total_TH * by_row(share_T, total_TH.shape)).astype(shape.dtype)
    refs.lse_smem.at[wg][...] = jnp.where(any_T, max_T * LN2 + log_T, -jnp.inf)
    if energy_T is not None:
        refs.entropy_smem.at[wg][...] = log_T - energy_T * share_T * LN2
    if refs.max_smem is not None:
        refs.max_smem.at[wg][...] = jnp.where(any_T, max_T * LN2, -jnp.inf)
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(refs.q_smem.at[wg], refs.out.at[batch, tile.rows(wg), head])
    by_query = (
        (refs.lse_smem, refs.lse),
        (refs.entropy_smem, refs.entropy),
        (refs.max_smem, refs.max_logit),
    )
    for smem, gmem in by_query:
        if smem is not None:
            plgpu.copy_smem_to_gmem(smem.at[wg], gmem.at[batch, head, tile.rows(wg)])
    plgpu.wait_smem_to_gmem(0)
