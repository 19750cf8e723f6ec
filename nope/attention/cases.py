"""The shapes on which attention is tested and measured."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.attention.structure import Mask


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of `attention`.

    segments: 'none'; 'packed', a few documents a row, the same for queries and keys; 'empty',
        ids of which some queries find no key (and all queries of the first row find none).
    """

    name: str
    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    head_dim: int
    causal: bool = True
    segments: str = 'none'
    dtype: str = 'float32'

    @property
    def visible_pairs(self) -> int:
        """Pairs of query and key that the causal rule leaves, over batch and heads."""
        pairs = self.queries * self.keys
        if self.causal:
            pairs = self.queries * (self.queries + 1) // 2
        return self.batch * self.heads * pairs


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Arrays of a case: the arguments of `attention` and a cotangent for each output."""

    q_BTNH: jax.Array
    k_BSKH: jax.Array
    v_BSKH: jax.Array
    mask: Mask
    d_out_BTNH: jax.Array
    d_lse_BNT: jax.Array
    d_entropy_BNT: jax.Array


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """Draws the arrays of `case`; q carries 1 / sqrt(H), so that logits are of order one."""
    keys = jax.random.split(jax.random.key(seed), 8)
    B, T, S, N, K = case.batch, case.queries, case.keys, case.heads, case.kv_heads
    q_BTNH, d_out_BTNH = jax.random.normal(keys[0], (2, B, T, N, case.head_dim), case.dtype)
    k_BSKH, v_BSKH = jax.random.normal(keys[1], (2, B, S, K, case.head_dim), case.dtype)
    d_lse_BNT, d_entropy_BNT = jax.random.normal(keys[2], (2, B, N, T))
    mask = Mask(causal=case.causal)
    if case.segments != 'none':
        q_ids_BT = _documents(keys[3], B, T)
        kv_ids_BS = q_ids_BT if T == S else _documents(keys[4], B, S)
        if case.segments == 'empty':
            kv_ids_BS = jnp.where(kv_ids_BS == 2, 9, kv_ids_BS).at[0].set(9)
        mask = Mask(case.causal, q_ids_BT, kv_ids_BS)
    q_BTNH = (q_BTNH * case.head_dim**-0.5).astype(case.dtype)
    return Inputs(q_BTNH, k_BSKH, v_BSKH, mask, d_out_BTNH, d_lse_BNT, d_entropy_BNT)


def _documents(key: jax.Array, batch: int, length: int, documents: int = 4) -> jax.Array:
    """Ids 1, 2, ... of `documents` stretches of random lengths, [batch, length]."""
    starts_BT = jax.random.uniform(key, (batch, length))
    order_BT = jnp.argsort(jnp.argsort(starts_BT, axis=1), axis=1)
    return 1 + jnp.cumsum(order_BT < documents - 1, axis=1, dtype=jnp.int32)


# Small enough for the reference, and between them every path of an implementation: one block
# and several, ragged ends, grouped heads, every mask, every dtype.
TEST_CASES = (
    Case('one_token', 2, 1, 1, 2, 2, 8),
    Case('tiny', 2, 7, 7, 4, 2, 8),
    Case('one_block', 2, 64, 64, 4, 4, 16),
    Case('ragged', 2, 131, 131, 16, 16, 8),
    Case('grouped', 2, 192, 192, 16, 4, 8),
    Case('one_kv_head', 2, 200, 200, 16, 1, 8),
    Case('packed', 2, 150, 150, 16, 8, 8, segments='packed'),
    Case('packed_one_block', 2, 33, 33, 4, 2, 8, segments='packed'),
    Case('empty_rows', 2, 150, 150, 16, 8, 8, segments='empty'),
    Case('empty_rows_one_block', 2, 33, 33, 4, 2, 8, segments='empty'),
    Case('full', 2, 128, 256, 16, 16, 8, causal=False),
    Case('full_ragged', 2, 70, 211, 16, 8, 8, causal=False),
    Case('full_one_query', 2, 1, 211, 16, 8, 8, causal=False),
    Case('full_empty_rows', 2, 150, 211, 16, 8, 8, causal=False, segments='empty'),
    Case('bfloat16', 2, 150, 150, 16, 8, 8, dtype='bfloat16'),
    Case('bfloat16_one_block', 2, 50, 50, 4, 2, 8, dtype='bfloat16'),
    Case('float16', 2, 150, 150, 16, 8, 8, dtype='float16'),
)

# Sizes of models that the experiments train and evaluate.
BENCH_CASES = (
    Case('tiny_train', 32, 64, 64, 4, 4, 32),
    Case('small_train', 4, 512, 512, 8, 8, 64),
    Case('window_2k', 1, 2048, 2048, 8, 8, 64),
    Case('window_4k', 1, 4096, 4096, 8, 8, 64),
    Case('grouped_4k', 1, 4096, 4096, 16, 2, 64),
    Case('window_16k', 1, 16384, 16384, 4, 4, 64),
)
