"""Shapes for attention's tests and benchmarks."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding

from nope.attention.bias import AlibiBias, Bias, Buckets, ScaleInvariantBias
from nope.attention.structure import Mask


@dataclasses.dataclass(frozen=True)
class Trial:
    """One call of `attention`.

    segments: 'none'; 'packed', a few documents a row, the same for queries and keys; 'empty',
        ids of which some queries find no key (and all queries of the first row find none).
    window, offset: as in `Mask`. bias: 'none', 'alibi', 'buckets' or 'scale_invariant', which
        multiplies too.
    key_bias: whether there is one, of order one.
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
    window: int | None = None
    offset: int | None = None
    bias: str = 'none'
    key_bias: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """B, T, S, N, K, H."""
        return self.batch, self.queries, self.keys, self.heads, self.kv_heads, self.head_dim

    @property
    def visible_pairs(self) -> int:
        """Pairs of query and key that the rules of position leave, over batch and heads."""
        at_T = (self.offset or 0) + np.arange(self.queries)
        window = self.window or self.queries + self.keys + (self.offset or 0)
        last_T = np.minimum(at_T if self.causal else at_T + window - 1, self.keys - 1)
        first_T = np.maximum(at_T - window + 1, 0)
        return self.batch * self.heads * int(np.maximum(last_T - first_T + 1, 0).sum())


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Inputs:
    """Arrays of a case: the arguments of `attention` and a cotangent for each output."""

    q_BTNH: jax.Array
    k_BSKH: jax.Array
    v_BSKH: jax.Array
    mask: Mask
    bias: Bias | None
    key_bias_BNS: jax.Array | None
    d_out_BTNH: jax.Array
    d_lse_BNT: jax.Array
    d_entropy_BNT: jax.Array


def make_inputs(case: Trial, seed: int = 0) -> Inputs:
    """Draws the arrays of `case`; q carries 1 / sqrt(H), so that logits are of order one."""
    rng = np.random.default_rng(seed)
    B, T, S, N, K, H = case.sizes

    def normal(*shape: int, dtype: str = case.dtype, scale: float = 1.0) -> jax.Array:
        return jnp.asarray(scale * rng.standard_normal(shape, np.float32), dtype)

    key_bias_BNS = None
    if case.key_bias:
        own = np.random.default_rng(2)
        key_bias_BNS = jnp.asarray(own.standard_normal((B, N, S), np.float32))
    return Inputs(
        q_BTNH=normal(B, T, N, H, scale=H**-0.5),
        k_BSKH=normal(B, S, K, H),
        v_BSKH=normal(B, S, K, H),
        mask=dataclasses.replace(_segments(case, rng), window=case.window, offset=case.offset),
        bias=_make_bias(case),
        key_bias_BNS=key_bias_BNS,
        d_out_BTNH=normal(B, T, N, H, dtype='float32'),
        d_lse_BNT=normal(B, N, T, dtype='float32'),
        d_entropy_BNT=normal(B, N, T, dtype='float32'),
    )


def abstract_inputs(case: Trial, sharding: Sharding | None = None) -> Inputs:
    """Shapes and dtypes of `make_inputs`, for programs that are compiled and not run; an offset
    among them. sharding: where they would lie, all alike."""
    B, T, S, N, K, H = case.sizes

    def array(*shape: int, dtype: str = case.dtype) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=sharding)

    ids = (None, None)
    if case.segments != 'none':
        ids = array(B, T, dtype='int32'), array(B, S, dtype='int32')
    return Inputs(
        q_BTNH=array(B, T, N, H),
        k_BSKH=array(B, S, K, H),
        v_BSKH=array(B, S, K, H),
        mask=Mask(
            case.causal, *ids, case.window, None if case.offset is None else array(dtype='int32')
        ),
        bias=jax.tree.map(
            lambda x: array(*x.shape, dtype=x.dtype.name),
            jax.eval_shape(functools.partial(_make_bias, case)),
        ),
        key_bias_BNS=array(B, N, S, dtype='float32') if case.key_bias else None,
        d_out_BTNH=array(B, T, N, H, dtype='float32'),
        d_lse_BNT=array(B, N, T, dtype='float32'),
        d_entropy_BNT=array(B, N, T, dtype='float32'),
    )


def _make_bias(case: Trial) -> Bias | None:
    """Drawn apart from the other arrays, which do not change with it."""
    rng = np.random.default_rng(1)
    if case.bias == 'none':
        return None
    if case.bias == 'alibi':
        return AlibiBias(jnp.asarray(2.0 ** -(1 + 4 * rng.random(case.heads, np.float32))))
    if case.bias == 'scale_invariant':
        return ScaleInvariantBias(jnp.asarray(2 * rng.random(case.heads, np.float32)))
    table = jnp.asarray(rng.standard_normal((32, case.heads), np.float32))
    return Buckets(table, max_distance=128)


def _segments(case: Trial, rng: np.random.Generator) -> Mask:
    if case.segments == 'none':
        return Mask(causal=case.causal)
    q_ids_BT = _documents(rng, case.batch, case.queries)
    kv_ids_BS = q_ids_BT
    if case.queries != case.keys:
        kv_ids_BS = _documents(rng, case.batch, case.keys)
    if case.segments == 'empty':
        kv_ids_BS = np.where(kv_ids_BS == 2, 9, kv_ids_BS)
        kv_ids_BS[0] = 9
    return Mask(case.causal, jnp.asarray(q_ids_BT), jnp.asarray(kv_ids_BS))


def _documents(rng: np.random.Generator, batch: int, length: int) -> np.ndarray:
    """Ids 1 to 4 of four stretches of random lengths, int32 [batch, length]."""
    ends = [np.sort(rng.integers(1, length, 3)) for _ in range(batch)]
    ids = [np.searchsorted(row, np.arange(length), side='right') for row in ends]
    return 1 + np.asarray(ids, np.int32)


# Sizes of models that the experiments train and evaluate.
BENCH_CASES = (
    Trial('tiny_train', 32, 64, 64, 4, 4, 32),
    Trial('small_train', 4, 512, 512, 8, 8, 64),
    Trial('window_2k', 1, 2048, 2048, 8, 8, 64),
    Trial('window_4k', 1, 4096, 4096, 8, 8, 64),
    Trial('window_8k', 1, 8192, 8192, 8, 8, 64),
    Trial('grouped_4k', 1, 4096, 4096, 16, 2, 64),
    Trial('window_16k', 1, 16384, 16384, 4, 4, 64),
    Trial('sliding_16k', 1, 16384, 16384, 4, 4, 64, window=1024),
    Trial('alibi_4k', 1, 4096, 4096, 8, 8, 64, bias='alibi'),
    Trial('buckets_4k', 1, 4096, 4096, 8, 8, 64, bias='buckets'),
    Trial('factors_4k', 1, 4096, 4096, 8, 8, 64, bias='scale_invariant'),
    Trial('key_bias_4k', 1, 4096, 4096, 8, 8, 64, key_bias=True),
    Trial('decode_16k', 1, 1, 16384, 8, 8, 64, offset=16383),
)


def _one_layer(name: str, batch: int, length: int, head_dim: int) -> Trial:
    """A layer of a 1.1B model, with its heads of 64 or as wide ones."""
    return Trial(name, batch, length, length, 32, 4, head_dim, dtype='bfloat16')


# 16,384 tokens, and one sequence of 131,072.
ACCELERATOR_CASES = (
    *(
        _one_layer(f'h{head_dim}_{length // 1024}k', 16384 // length, length, head_dim)
        for head_dim in (64, 128)
        for length in (2048, 8192, 16384)
    ),
    _one_layer('h64_128k', 1, 131072, 64),
)

# One sequence.
LENGTH_CASES = tuple(
    _one_layer(f'h{head_dim}_1x{length // 1024}k', 1, length, head_dim)
    for head_dim in (64, 128)
    for length in (2048, 8192, 32768, 131072)
)
