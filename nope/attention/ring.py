"""Attention over a sequence that is split over devices.

Every device keeps its queries. Keys, values and their segment ids travel around the ring, one
neighbour at a time, and each device joins what it computes on them to what it has (`combine`).
A device holds two shards of keys and values at a time, and logits exist block by block only.
The backward pass is this ring differentiated: gradients travel the other way around, and the
shards that came by are kept until then, so that a device needs memory for all keys and values of
one layer.

Liu et al., 2023, "Ring Attention with Blockwise Transformers" (arXiv:2310.01889).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.attention.api import attention
from nope.attention.bias import Bias
from nope.attention.combine import combine
from nope.attention.structure import AttentionOutput, Mask


def ring_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    axis: str,
    mask: Mask = Mask(),  # noqa: B008 (frozen, holds no arrays)
    bias: Bias | None = None,
    entropy: bool = False,
    implementation: str | None = None,
) -> AttentionOutput:
    """`attention` of one device's queries over the keys of all devices along a mesh axis.

    Call it inside a jitted `jax.shard_map(..., check_vma=False)`. Arguments are this device's
    shards of `attention`'s: T queries and S keys of P T and P S, in order along the axis; segment
    ids likewise, the bias whole. `mask.offset` is the position of the first query of them all.

    Returns this device's rows; all outputs as those of `attention` to float32 rounding.
    Raises as `attention`, ValueError for a causal mask without an offset and T != S.
    """
    (B, T), S = q_BTNH.shape[:2], k_BSKH.shape[1]
    mask.check(B, T, S)
    size, rank = jax.lax.axis_size(axis), jax.lax.axis_index(axis)
    first_query = rank * T + (0 if mask.offset is None else mask.offset)
    onwards = [(device, (device + 1) % size) for device in range(size)]

    def attend(shard, turn):
        k_BSKH, v_BSKH, ids_BS = shard
        first_key = (rank - turn) % size * S
        there = dataclasses.replace(
            mask, kv_segments_BS=ids_BS, offset=jnp.asarray(first_query - first_key, jnp.int32)
        )
        part = attention(
            q_BTNH,
            k_BSKH,
            v_BSKH,
            mask=there,
            bias=bias,
            entropy=entropy,
            implementation=implementation,
        )
        return part._replace(out=part.out.astype(jnp.float32))

    def step(carry, turn):
        seen, shard = carry
        shard = jax.tree.map(lambda x: jax.lax.ppermute(x, axis, onwards), shard)
        return (combine(seen, attend(shard, turn)), shard), None

    shard = k_BSKH, v_BSKH, mask.kv_segments_BS
    (seen, _), _ = jax.lax.scan(step, (attend(shard, 0), shard), jnp.arange(1, size))
    return seen._replace(out=seen.out.astype(q_BTNH.dtype))
