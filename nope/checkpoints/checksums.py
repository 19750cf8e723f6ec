"""Checksums of arrays, which a checkpoint keeps beside them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def checksums(tree: Any) -> dict[str, int]:
    """Leaf path -> a 32-bit checksum of its bits, computed where the leaf lives.

    The sum over elements of bits * (2 * index + 1), modulo 2^32: integer addition gives
    the same result in any order and on any sharding, and no single changed element can
    hide, since an odd factor is invertible.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    sums = jax.device_get(_checksums([leaf for _, leaf in leaves]))
    return {
        jax.tree_util.keystr(path): int(value)
        for (path, _), value in zip(leaves, sums, strict=True)
    }


@jax.jit
def _checksums(leaves: list[jax.Array]) -> list[jax.Array]:
    return [_checksum(leaf) for leaf in leaves]


def _checksum(leaf: jax.Array) -> jax.Array:
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[leaf.dtype.itemsize]
    bits = jax.lax.bitcast_convert_type(leaf, unsigned).astype(jnp.uint32)
    weight = jnp.uint32(1)
    stride = 1
    for axis in reversed(range(bits.ndim)):  # row-major index without a reshape
        index = jax.lax.broadcasted_iota(jnp.uint32, bits.shape, axis)
        weight = weight + index * jnp.uint32((2 * stride) % 2**32)
        stride *= bits.shape[axis]
    return jnp.sum(bits * weight, dtype=jnp.uint32)
