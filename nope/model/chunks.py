"""Attention inside chunks of the sequence, the local layers of iRoPE (Llama 4).

A chunk is a segment: two tokens see each other where they have both the document and
floor(position / chunk) in common. So every kernel that keeps documents apart has chunks too, at
the cost of attention over the whole sequence, of which it masks what lies outside.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.attention import Mask


class Places(NamedTuple):
    """Positions by which queries and keys fall into chunks, int32 [B, T] and [B, S], 0 or more."""

    queries_BT: jax.Array
    keys_BS: jax.Array


def masked(mask: Mask, places: Places, chunk: int) -> Mask:
    """The mask whose queries see the keys of their own chunk only, among those that they saw."""
    q_BT, k_BS = (positions // chunk for positions in places)
    if mask.q_segments_BT is not None and mask.kv_segments_BS is not None:
        chunks = 1 + jnp.maximum(jnp.max(q_BT), jnp.max(k_BS))
        q_BT += mask.q_segments_BT * chunks
        k_BS += mask.kv_segments_BS * chunks
    return dataclasses.replace(mask, q_segments_BT=q_BT, kv_segments_BS=k_BS)
