"""Block layout of queries and keys in chunked attention.

C query blocks, D key blocks. R = G * q_block rows of a query block share one key/value head. Row r
is query r % q_block of head r // q_block of the group. So grouped queries are one larger matrix
product and no key is repeated. B and K stay separate axes: each can be sharded.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from nope.attention.blocks import BlockPlan

# Logits of one pair of blocks, over batch and heads, that the second-level caches of a CPU hold
# next to the weights. Measured with 1 MiB of cache a core, float32, H = 64. One core: at B N = 8
# and T = 4096, blocks of 128, 256, 512 take 1 : 1.1 : 1.5 forward; at B N = 32 and T = 512,
# blocks of 64, 128, 256 take 1 : 1.15 : 1.9 forward and backward. Blocks that are no power of two
# are slower than the next larger one that is.
_CPU_LOGITS = 2**18
_CPU_BLOCKS = (64, 512)
# Several threads share the product of a key head and a block only above some 2**18 logits, whatever
# H. Two cores, H = 64, T = 4096: blocks of 512 are 1.5 times as fast forward as the smaller ones at
# B N = 8, and 1.3 times forward and backward; 1.3 and 1.1 with two or four heads on a key, 1.2 and
# 1.0 to 1.5 and 1.5 at B N = 16. Slower are they at B N = 32, and at 14 heads on two keys, whose
# smaller products are shared. So the smaller blocks stay there, for one core, and for short
# sequences and windows.
_SHARED_BLOCK = 512
_SHARED_LOGITS = 2**22
_UNSHARED_PRODUCT = 2**18
# Elsewhere: large enough to occupy a matrix unit, small enough for any batch. Not measured.
_ACCELERATOR_BLOCK = 256


def make_plan(
    *,
    causal: bool,
    window: int | None = None,
    aligned: bool = True,
    entropy: bool,
    rows: int,
    group: int = 1,
    queries: int,
    keys: int,
    backend: str,
    threads: int = 1,
) -> BlockPlan:
    """Chooses block sizes.

    rows: B N, the logits matrices that are worked on at once. group: heads that share their keys.
    threads: those of a CPU.
    """
    if backend == 'cpu':
        smallest, largest = _CPU_BLOCKS
        side = 2 ** math.ceil(math.log2(_CPU_LOGITS / rows) / 2)
        target = min(max(side, smallest), largest)
        span = min(queries, keys if window is None else min(keys, window))
        fits = span >= 2 * _SHARED_BLOCK and rows * _SHARED_BLOCK**2 <= _SHARED_LOGITS
        if threads > 1 and fits and group * target**2 <= _UNSHARED_PRODUCT:
            target = _SHARED_BLOCK
    else:
        target = _ACCELERATOR_BLOCK
    aligned = aligned and queries == keys
    q_block = _block(queries, target)
    k_block = q_block
    if not (causal and aligned):
        # Few queries, as in decoding: as many logits at a time from more keys.
        k_block = _block(keys, target * 2 ** int(math.log2(max(target // q_block, 1))))
    return BlockPlan(causal, window, aligned, entropy, queries, keys, q_block, k_block)


def _block(length: int, target: int) -> int:
    """One block where that is little longer than `target`, else `target`."""
    return length if length <= target * 3 // 2 else target


def cut_blocks(array_BT: jax.Array, block: int) -> jax.Array:
    """[B, T, ...] -> [B, blocks, block, ...], padded with zeros."""
    B, T = array_BT.shape[:2]
    blocks = -(-T // block)
    if blocks * block > T:
        widths = [(0, 0), (0, blocks * block - T)] + [(0, 0)] * (array_BT.ndim - 2)
        array_BT = jnp.pad(array_BT, widths)
    return array_BT.reshape(B, blocks, block, *array_BT.shape[2:])


def split_q(q_BTNH: jax.Array, kv_heads: int, plan: BlockPlan) -> jax.Array:
    """[B, T, N, H] -> [C, B, K, R, H]."""
    B, _, N, H = q_BTNH.shape
    C, K = plan.q_blocks, kv_heads
    q_BCTKGH = cut_blocks(q_BTNH, plan.q_block).reshape(B, C, plan.q_block, K, N // K, H)
    return q_BCTKGH.transpose(1, 0, 3, 4, 2, 5).reshape(C, B, K, -1, H)


def join_q(out_CBKRH: jax.Array, plan: BlockPlan) -> jax.Array:
    """[C, B, K, R, H] -> [B, T, N, H]."""
    C, B, K, _, H = out_CBKRH.shape
    out_CBKGTH = out_CBKRH.reshape(C, B, K, -1, plan.q_block, H)
    out_BCTKGH = out_CBKGTH.transpose(1, 0, 4, 2, 3, 5)
    return out_BCTKGH.reshape(B, C * plan.q_block, -1, H)[:, : plan.queries]


def join_rows(rows_CBKR: jax.Array, plan: BlockPlan) -> jax.Array:
    """[C, B, K, R] -> [B, N, T]."""
    C, B, K, _ = rows_CBKR.shape
    rows_BKGCT = rows_CBKR.reshape(C, B, K, -1, plan.q_block).transpose(1, 2, 3, 0, 4)
    return rows_BKGCT.reshape(B, -1, C * plan.q_block)[..., : plan.queries]


def split_rows(
    rows_BNT: jax.Array, kv_heads: int, plan: BlockPlan, beyond: float = 0.0
) -> jax.Array:
    """[B, N, T] -> [C, B, K, R], rows beyond the end filled with `beyond`."""
    B, N, T = rows_BNT.shape
    C, K = plan.q_blocks, kv_heads
    widths = [(0, 0), (0, 0), (0, plan.padded_queries - T)]
    padded_BNT = jnp.pad(rows_BNT, widths, constant_values=beyond)
    rows_BKGCT = padded_BNT.reshape(B, K, N // K, C, plan.q_block)
    return rows_BKGCT.transpose(3, 0, 1, 2, 4).reshape(C, B, K, -1)


def split_kv(k_BSKH: jax.Array, plan: BlockPlan) -> jax.Array:
    """[B, S, K, H] -> [D, B, K, k_block, H]."""
    return cut_blocks(k_BSKH, plan.k_block).transpose(1, 0, 3, 2, 4)


def split_by_key(bias_BNS: jax.Array, kv_heads: int, plan: BlockPlan) -> jax.Array:
    """[B, N, S] -> [D, B, K, G, k_block], padded with zeros."""
    B, N, S = bias_BNS.shape
    padded_BNS = jnp.pad(bias_BNS, [(0, 0), (0, 0), (0, plan.padded_keys - S)])
    bias_BKGDS = padded_BNS.reshape(B, kv_heads, N // kv_heads, plan.k_blocks, plan.k_block)
    return bias_BKGDS.transpose(3, 0, 1, 2, 4)


def join_by_key(sums_DBKGS: jax.Array, plan: BlockPlan) -> jax.Array:
    """[D, B, K, G, k_block] -> [B, N, S]."""
    _, B, K, G, _ = sums_DBKGS.shape
    sums_BKGDS = sums_DBKGS.transpose(1, 2, 3, 0, 4)
    return sums_BKGDS.reshape(B, K * G, plan.padded_keys)[..., : plan.keys]


def split_line(line_ND: jax.Array | None, kv_heads: int, plan: BlockPlan) -> jax.Array | None:
    """[N, T + S - 1] -> [K, G, distances of the padded blocks]."""
    if line_ND is None:
        return None
    before, after = plan.padded_keys - plan.keys, plan.padded_queries - plan.queries
    padded_ND = jnp.pad(line_ND, [(0, 0), (before, after)])
    return padded_ND.reshape(kv_heads, line_ND.shape[0] // kv_heads, -1)


def join_line(sums_KGD: jax.Array | None, plan: BlockPlan) -> jax.Array | None:
    """[K, G, distances of the padded blocks] -> [N, T + S - 1]."""
    if sums_KGD is None:
        return None
    K, G, _ = sums_KGD.shape
    size, before = plan.queries + plan.keys - 1, plan.padded_keys - plan.keys
    return sums_KGD.reshape(K * G, -1)[:, before : before + size]


def join_kv(sums_DBKHS: jax.Array, plan: BlockPlan) -> jax.Array:
    """[D, B, K, H, k_block] -> [B, S, K, H]."""
    D, B, K, H, _ = sums_DBKHS.shape
    sums_BDSKH = sums_DBKHS.transpose(1, 0, 4, 2, 3)
    return sums_BDSKH.reshape(B, D * plan.k_block, K, H)[:, : plan.keys]
