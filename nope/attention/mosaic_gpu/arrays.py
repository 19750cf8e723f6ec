"""Arrays of a call as the `mosaic_gpu` kernels take them: padded to whole tiles."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.flash import Operands


class Arrays(NamedTuple):
    """Inputs that all kernels of a call have, by the names of a kernel's references. The lengths of
    q, k and v are multiples of a tile. A key bias is float32 [B, N, S]. An offset is int32 [1]
    where it is not static. None for those that the call does not have."""

    q: jax.Array
    k: jax.Array
    v: jax.Array
    key_bias: jax.Array | None
    slopes: jax.Array | None
    q_ids: jax.Array | None
    kv_ids: jax.Array | None
    offset: jax.Array | None

    @property
    def biased(self) -> bool:
        """Whether there is a number by key in the logits."""
        return self.key_bias is not None or self.slopes is not None


def padded(
    operands: Operands, queries: int, keys: int, head_dim: int, *, static_offset: bool
) -> Arrays:
    """The arrays with zeros up to so many queries and keys of that head dim."""
    return Arrays(
        q=pad(operands.q_BTNH, {1: queries, 3: head_dim}),
        k=pad(operands.k_BSKH, {1: keys, 3: head_dim}),
        v=pad(operands.v_BSKH, {1: keys, 3: head_dim}),
        key_bias=_pad_if(operands.key_bias_BNS, {2: keys}),
        slopes=operands.slopes_N,
        q_ids=_pad_if(operands.q_ids_BT, {1: queries}),
        kv_ids=_pad_if(operands.kv_ids_BS, {1: keys}),
        offset=None if static_offset else operands.offset.reshape(1),
    )


def _pad_if(array: jax.Array | None, sizes: dict[int, int]) -> jax.Array | None:
    return None if array is None else pad(array, sizes)


def pad(array: jax.Array, sizes: dict[int, int]) -> jax.Array:
    """Zeros after the end, up to the size given for an axis."""
    widths = [(0, sizes.get(axis, size) - size) for axis, size in enumerate(array.shape)]
    return jnp.pad(array, widths) if any(after for _, after in widths) else array
