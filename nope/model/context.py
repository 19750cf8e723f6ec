"""Attention on a mesh: every device attends with its own rows and heads.

The compiler cannot divide a kernel over devices, so the division is made here. Batch and heads are
independent. Where the mesh splits the sequence, keys and values go around a ring of its devices.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from nope.attention import AttentionOutput, Bias, Mask, attention
from nope.attention.dropout import Dropout
from nope.attention.reference import reference_attention
from nope.attention.ring import ring_attention
from nope.runtime.mesh_axes import axes_of, parts_of

log = logging.getLogger(__name__)


def sequence_sharded() -> bool:
    """True where the current mesh and rules split the sequence."""
    return parts_of(axes_of('sequence')) > 1


def attend(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool,
    max_logit: bool = False,
    lse: bool = True,
    implementation: str | None = None,
    dropout: Dropout | None = None,
) -> AttentionOutput:
    """`nope.attention.attention` under the current mesh and its logical rules.

    Rows are filled up to a multiple of their devices. Each device has heads and the sequence whole
    where they do not divide. Queries that continue cached keys have a whole sequence.
    dropout: of the attention weights, with keys [B, N]. The definition alone has it, whatever
    implementation was asked for.
    """
    if dropout is not None:
        _say_definition()
        return reference_attention(
            q_BTNH, k_BSKH, v_BSKH,
            mask=mask, bias=bias, key_bias_BNS=key_bias_BNS,
            entropy=entropy, max_logit=max_logit, dropout=dropout,
        )  # fmt: skip
    if math.prod(jax.sharding.get_abstract_mesh().shape.values()) == 1:
        return attention(
            q_BTNH, k_BSKH, v_BSKH,
            mask=mask, bias=bias, key_bias_BNS=key_bias_BNS,
            entropy=entropy, max_logit=max_logit, lse=lse, implementation=implementation,
        )  # fmt: skip

    split = _split(q_BTNH.shape, k_BSKH.shape, cached=mask.offset is not None)
    if split.repeats > 1:
        k_BSKH, v_BSKH = (jnp.repeat(x, split.repeats, axis=2) for x in (k_BSKH, v_BSKH))

    def local(q_BTNH, k_BSKH, v_BSKH, key_bias_BNS, ids, offset, bias) -> AttentionOutput:
        segmented = dataclasses.replace(
            mask, q_segments_BT=ids[0], kv_segments_BS=ids[1], offset=offset
        )
        function: Any = functools.partial(attention, lse=lse)
        if split.sequence is not None:  # the ring needs every lse
            function = functools.partial(ring_attention, axis=split.sequence)
        return function(
            q_BTNH, k_BSKH, v_BSKH,
            mask=segmented, bias=bias, key_bias_BNS=key_bias_BNS,
            entropy=entropy, max_logit=max_logit, implementation=implementation,
        )  # fmt: skip

    by_token = PartitionSpec(split.batch, split.sequence)
    by_head = PartitionSpec(split.batch, split.sequence, split.heads)
    # Heads are the last axis of whatever a bias holds.
    of_bias = jax.tree.map(lambda x: PartitionSpec(*(None,) * (jnp.ndim(x) - 1), split.heads), bias)
    by_row = PartitionSpec(split.batch, split.heads, split.sequence)
    largest = by_row if max_logit else None
    outputs: Any = by_head, by_row, by_row if entropy else None, largest
    function = jax.shard_map(
        local,
        in_specs=(by_head, by_head, by_head, by_row, by_token, PartitionSpec(), of_bias),
        out_specs=AttentionOutput(*outputs),
        check_vma=False,
    )
    B = q_BTNH.shape[0]
    filled = -B % parts_of(split.batch)
    ids = mask.q_segments_BT, mask.kv_segments_BS
    q_BTNH, k_BSKH, v_BSKH, key_bias_BNS, ids = jax.tree.map(
        lambda x: jnp.pad(x, [(0, filled)] + [(0, 0)] * (x.ndim - 1)) if filled else x,
        (q_BTNH, k_BSKH, v_BSKH, key_bias_BNS, ids),
    )
    result = function(q_BTNH, k_BSKH, v_BSKH, key_bias_BNS, ids, mask.offset, bias)
    return jax.tree.map(lambda x: x[:B], result)


@functools.cache
def _say_definition() -> None:
    log.info(
        "attention: implementation 'reference' in training, with T x S numbers for each head: no "
        'other drops attention weights'
    )


class _Split(NamedTuple):
    """Mesh axes over which each axis is divided, None for whole; and how often key/value heads
    are repeated, so that every device has those of its query heads."""

    batch: Any
    sequence: Any
    heads: Any
    repeats: int


def _split(q_shape: tuple[int, ...], k_shape: tuple[int, ...], *, cached: bool) -> _Split:
    (_, T, N, _), (_, S, K, _) = q_shape, k_shape
    batch, sequence, heads = (axes_of(name) for name in ('batch', 'sequence', 'heads'))
    parts = parts_of(heads)
    repeats = parts // math.gcd(K, parts)
    if N % (K * repeats):
        heads, repeats = None, 1
    parts = parts_of(sequence)
    if not cached and (T % parts or S % parts):
        _say_whole(T, parts)
    if cached or parts == 1 or T % parts or S % parts:
        sequence = None
    return _Split(batch, sequence, heads, repeats)


@functools.cache
def _say_whole(tokens: int, parts: int) -> None:
    log.info(
        'sequences of %d tokens are not divided over %d devices: each has them whole', tokens, parts
    )
