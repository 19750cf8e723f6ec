"""Attention where the mesh splits the sequence: a ring over the devices that hold its parts."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import flax.linen as nn
import jax
from jax.sharding import PartitionSpec

from nope.attention import AttentionOutput, Mask, attention
from nope.attention.ring import ring_attention


def sequence_sharded() -> bool:
    """Whether the current mesh and rules split the sequence."""
    return _parts(_spec('sequence')[0]) > 1


def attend(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    entropy: bool,
    implementation: str | None,
) -> AttentionOutput:
    """`nope.attention.attention` under the current mesh and its logical rules.

    Where the sequence is split into parts of one size, keys and values go around the ring and are
    gathered nowhere. Where lengths or heads do not divide over the devices, the compiler decides.
    """
    options: dict[str, Any] = {'entropy': entropy, 'implementation': implementation}
    queries = _spec('batch', 'sequence', 'heads', 'head_dim')
    keys = _spec('batch', 'sequence', 'kv_heads', 'head_dim')
    even = _divides(queries, q_BTNH) and _divides(keys, k_BSKH)
    if not (sequence_sharded() and even and mask.offset is None):
        return attention(q_BTNH, k_BSKH, v_BSKH, mask=mask, **options)

    axis: Any = queries[1]
    by_row = PartitionSpec(queries[0], queries[2], axis)
    outputs: tuple[Any, ...] = queries, by_row, by_row if entropy else None

    def local(q_BTNH, k_BSKH, v_BSKH, ids) -> AttentionOutput:
        here = dataclasses.replace(mask, q_segments_BT=ids[0], kv_segments_BS=ids[1])
        return ring_attention(q_BTNH, k_BSKH, v_BSKH, axis=axis, mask=here, **options)

    ids_spec = PartitionSpec(*queries[:2])
    function = jax.shard_map(
        local,
        in_specs=(queries, keys, keys, ids_spec),
        out_specs=AttentionOutput(*outputs),
        check_vma=False,
    )
    return function(q_BTNH, k_BSKH, v_BSKH, (mask.q_segments_BT, mask.kv_segments_BS))


def _spec(*axes: str) -> PartitionSpec:
    """Mesh axes of logical ones under the current rules; nothing is split without rules."""
    spec = nn.logical_to_mesh_axes(axes)
    return PartitionSpec(*([None] * len(axes) if spec is None else spec))


def _parts(entry: Any) -> int:
    """Into how many parts the current mesh splits an axis."""
    sizes = dict(jax.sharding.get_abstract_mesh().shape)
    names = (entry,) if isinstance(entry, str) else tuple(entry or ())
    return math.prod(sizes.get(name, 1) for name in names)


def _divides(spec: PartitionSpec, array: jax.Array) -> bool:
    return all(size % _parts(entry) == 0 for entry, size in zip(spec, array.shape, strict=True))
