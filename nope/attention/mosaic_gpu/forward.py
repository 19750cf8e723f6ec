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
    BY_ROW,
    COMPUTE,
    COMPUTE_REGISTERS,
    LN2,
    LOG2E,
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
    product,
    tile_of_queries,
    tiles,
    visible,
    weigh,
    zeros,
)


def forward(
    shape: Shape, arrays: Arrays
) -> tuple[jax.Array, jax.Array, jax.Array | None, jax.Array | None]:
    """out [B, T, N, H], lse, entropy and largest logit [B, N, T]."""
    block, stages = shape.blocks.step, shape.stages(held=TILE)
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


def attention_forward(
    shape, *, q, k, v, out, lse, q_smem, k_smem, v_smem, lse_smem, q_ready, k_ready, v_ready,
    k_free, v_free, turn, key_bias=None, bias_smem=None, slopes=None, q_ids=None, kv_ids=None,
    ids_smem=None, offset=None, entropy=None, entropy_smem=None, max_logit=None, max_smem=None,
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
            plgpu.copy_gmem_to_smem(q.at[batch, tile.rows(w), head], q_smem.at[w], q_ready.at[w])
        kv_head = lax.div(head, jnp.int32(shape.group))

        def fetch(j, _):
            slot, keys = slot_of(j), pl.ds(j * block, block)
            used = j - seen.begin >= stages
            pl.when(used)(lambda: plgpu.barrier_wait(k_free.at[slot]))
            plgpu.copy_gmem_to_smem(k.at[batch, keys, kv_head], k_smem.at[slot], k_ready.at[slot])
            if key_bias is not None:
                line = key_bias.at[batch, head, keys]
                plgpu.copy_gmem_to_smem(line, bias_smem.at[slot], k_ready.at[slot])
            if kv_ids is not None:
                plgpu.copy_gmem_to_smem(kv_ids.at[batch, keys], ids_smem.at[slot], k_ready.at[slot])
            pl.when(used)(lambda: plgpu.barrier_wait(v_free.at[slot]))
            plgpu.copy_gmem_to_smem(v.at[batch, keys, kv_head], v_smem.at[slot], v_ready.at[slot])

        lax.fori_loop(seen.begin, seen.end, fetch, None)

    @pl.when(wg < COMPUTE)
    def compute():
        plgpu.set_max_registers(COMPUTE_REGISTERS, action='increase')
        size = (ROWS, block)
        slope = None if slopes is None else slopes[head]
        q_ids_T = None
        if q_ids is not None:
            q_ids_T = load_global(q_ids.at[batch, tile.rows(wg)], BY_ROW)
        plgpu.barrier_wait(q_ready.at[wg])

        def take_turns():
            plgpu.barrier_arrive(turn)
            plgpu.barrier_wait(turn)

        def wait_for_keys(j):
            pl.when(j < seen.end)(lambda: plgpu.barrier_wait(k_ready.at[slot_of(j)]))

        def softmax(j, logits_TS, cut, max_T, norm_T, energy_T):
            """The weights of block j, the factor of those before, and the row's sums."""
            slot = slot_of(j)
            logits_TS = biased(
                shape, logits_TS, bias_smem, slot, slope, lambda: j * block - position
            )
            if cut:
                ids_S = load_slot(shape, ids_smem, slot)
                seen_TS = visible(shape, size, 0, position + wg * ROWS, j * block, q_ids_T, ids_S)
                logits_TS = jnp.where(seen_TS, logits_TS, HIDDEN)
            plgpu.barrier_arrive(k_free.at[slot])
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

        def first(j, carry):
            """Weights of the first block: there are no values to weigh meanwhile."""
            total_TH, _, rows = carry
            slot = slot_of(j)

            def weights(logits):
                take_turns()
                return softmax(j, logits(0), shape.segmented or any(seen.cut), *rows)

            plgpu.barrier_wait(k_ready.at[slot])
            weights_TS, _, rows = product(shape, q_smem.at[wg], k_smem.at[slot], weights)
            plgpu.barrier_arrive(turn)
            wait_for_keys(j + 1)
            plgpu.barrier_wait(turn)
            return total_TH, weights_TS.astype(shape.dtype), rows

        def step(j, carry, cut):
            """Weights of a block, while the tensor cores weigh the values of the one before."""
            total_TH, half_TS, rows = carry
            slot, before = slot_of(j), slot_of(j - 1)

            def weights(logits):
                plgpu.barrier_wait(v_ready.at[before])

                def softmax_meanwhile(total):
                    take_turns()
                    weights_TS, decay_T, new_rows = softmax(j, logits(1), cut, *rows)
                    # The assembler moves the next wait up, but not across this branch.
                    wait_for_keys(j + 1)
                    new_total_TH = total(0)
                    plgpu.barrier_arrive(v_free.at[before])
                    plgpu.barrier_arrive(turn)
                    # Not sooner: those before are an operand until then.
                    new_half_TS = weights_TS.astype(shape.dtype)
                    new_total_TH *= by_row(decay_T, new_total_TH.shape)
                    plgpu.barrier_wait(turn)
                    return new_total_TH, new_half_TS, new_rows

                return weigh(shape, half_TS, v_smem.at[before], softmax_meanwhile, total_TH)

            return product(shape, q_smem.at[wg], k_smem.at[slot], weights)

        def last(j, carry):
            """The values of the last block."""
            total_TH, half_TS, rows = carry
            slot = slot_of(j)

            def weighed(total):
                take_turns()
                return total(0)

            plgpu.barrier_wait(v_ready.at[slot])
            total_TH = weigh(shape, half_TS, v_smem.at[slot], weighed, total_TH)
            take_turns()
            return total_TH, half_TS, rows

        energy_T = zeros(ROWS) if shape.rules.entropy else None
        rows = zeros(ROWS) + FLOOR, zeros(ROWS), energy_T
        carry = zeros(ROWS, shape.head_dim), zeros(*size).astype(shape.dtype), rows
        xp = module_of(seen.begin, seen.end)
        second = xp.minimum(seen.begin + 1, seen.end)
        pl.when(wg == 1)(take_turns)
        carry = lax.fori_loop(seen.begin, second, first, carry)
        carry = sweep(seen.within(second, seen.end), step, carry, cut_all=shape.segmented)
        carry = lax.fori_loop(xp.maximum(seen.end - 1, seen.begin), seen.end, last, carry)
        total_TH, _, (max_T, norm_T, energy_T) = carry
        pl.when(wg == 0)(take_turns)

        any_T = norm_T > 0
        norm_T = jnp.where(any_T, norm_T, 1.0)
        share_T, log_T = 1 / norm_T, jnp.log(norm_T)
        q_smem.at[wg][...] = (total_TH * by_row(share_T, total_TH.shape)).astype(shape.dtype)
        lse_smem.at[wg][...] = jnp.where(any_T, max_T * LN2 + log_T, -jnp.inf)
        if energy_T is not None:
            entropy_smem.at[wg][...] = log_T - energy_T * share_T * LN2
        if max_smem is not None:
            max_smem.at[wg][...] = jnp.where(any_T, max_T * LN2, -jnp.inf)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(q_smem.at[wg], out.at[batch, tile.rows(wg), head])
        plgpu.copy_smem_to_gmem(lse_smem.at[wg], lse.at[batch, head, tile.rows(wg)])
        if entropy is not None:
            plgpu.copy_smem_to_gmem(entropy_smem.at[wg], entropy.at[batch, head, tile.rows(wg)])
        if max_logit is not None:
            plgpu.copy_smem_to_gmem(max_smem.at[wg], max_logit.at[batch, head, tile.rows(wg)])
        plgpu.wait_smem_to_gmem(0)
