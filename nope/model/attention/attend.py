"""Heads attend as layers of one kind do: positions, cache, lambda, and what is said of it."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.dense import dense_attention
from nope.attention.dropout import Dropout
from nope.model import context, lam
from nope.model.attention.by_head import Attended, Way, attend_by_kind
from nope.model.attention.sinks import add_sinks
from nope.model.attention.temperature import entropy_temperature
from nope.model.cache import LayerCache
from nope.model.config import ModelConfig
from nope.model.kinds import LayerKind
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats, Attend, LayerStats
from nope.positions import Position


class Heads(NamedTuple):
    """A layer's heads as they are projected, before positions and lambda.

    k_BTKH, v_BTKH: None where those of another layer are attended to. forgotten_BTN: the sums of
    the logarithms of forget gates. sinks_N: logits. keys_BN: typed keys of the dropout of attention
    weights. None for what the layer does not have.
    """

    q_BTNH: jax.Array
    k_BTKH: jax.Array | None
    v_BTKH: jax.Array | None
    multipliers_N: jax.Array
    forgotten_BTN: jax.Array | None
    sinks_N: jax.Array | None
    keys_BN: jax.Array | None


def attend_as(
    config: ModelConfig,
    kind: LayerKind,
    asked: AskedStats,
    keeps: bool,
    heads: Heads,
    sequence: Sequence,
    cached: LayerCache | None,
    source: LayerCache | None,
) -> tuple[jax.Array, LayerStats, LayerCache | None]:
    """Attention as layers of that kind do it: output [B, T, N, H], what it says, and cache."""
    q_BTNH, k_BTKH, v_BTKH, multipliers_N, forgotten_BTN, sinks_N, keys_BN = heads
    if source is not None:
        q_BTNH, _ = _encode(kind.position, q_BTNH, q_BTNH, sequence)
        k_BTKH, v_BTKH = source.keys_BSKH, source.values_BSKH
    else:
        assert k_BTKH is not None and v_BTKH is not None
        q_BTNH, k_BTKH = _encode(kind.position, q_BTNH, k_BTKH, sequence)
    if cached is not None:
        assert sequence.mask.offset is not None
        cached = cached.write(k_BTKH, v_BTKH, sequence.mask.offset, forgotten_BTN)
        k_BTKH, v_BTKH, sums_BSN1 = cached
        forgotten_BTN = None if sums_BSN1 is None else sums_BSN1[..., 0]
    elif keeps:
        cached = LayerCache(k_BTKH, v_BTKH)

    def attended(multipliers_N: jax.Array, way: Way) -> Attended:
        scaled_BTNH = lam.scale_queries(q_BTNH, multipliers_N, config.softmax_scale)
        mask, table = sequence.mask_of(kind), sequence.table
        seen = attend_by_kind(way, kind, scaled_BTNH, k_BTKH, v_BTKH, mask, table, forgotten_BTN)
        return seen if sinks_N is None else add_sinks(seen, sinks_N, way.queries_R)

    if config.temperature == 'entropy':
        plain = Way(_weighted(config, AskedStats(entropy=True)), config.weights)
        entropy_BNT = attended(multipliers_N, plain).output.entropy
        assert entropy_BNT is not None
        factors_BTN = entropy_temperature(config, kind, entropy_BNT)
        multipliers_N = lam.times(multipliers_N, factors_BTN)
    dropout = None if keys_BN is None else Dropout(config.attention_dropout, keys_BN)
    way = Way(_weighted(config, asked), config.weights, asked.span, sequence.queries_R, dropout)
    output, shape, weights_BNRS = attended(multipliers_N, way)
    return output.out, LayerStats(output.entropy, shape, output.max_logit, weights_BNRS), cached


def _weighted(config: ModelConfig, asked: AskedStats) -> Attend:
    """Attention by the model's weights. ValueError for the shape of others than softmax's."""
    entropy, max_logit = asked.entropy, asked.max_logit
    if config.weights == 'softmax':
        lse = config.sinks or asked.span is not None
        return functools.partial(
            context.attend,
            entropy=entropy,
            max_logit=max_logit,
            lse=lse,
            implementation=config.attention,
        )
    if asked.span is not None:
        raise ValueError(
            f'span is {asked.span}; the shape of attention is that of softmax weights, and the '
            f'model has weights={config.weights!r}'
        )
    # Array operations, which the compiler divides by rows and heads.
    return functools.partial(
        dense_attention, entropy=entropy, max_logit=max_logit, weights=config.weights
    )


def _encode(
    position: Position, q_BTNH: jax.Array, k_BTKH: jax.Array, sequence: Sequence
) -> tuple[jax.Array, jax.Array]:
    """Queries and keys with positions; row by row where rows differ in their length."""
    positions_BT = sequence.for_encodings
    if jnp.ndim(sequence.length) == 0:
        return position.encode(q_BTNH, k_BTKH, positions_BT, sequence.length)

    def row(q_TNH: jax.Array, k_TKH: jax.Array, positions_T: jax.Array, length: jax.Array):
        q, k = position.encode(q_TNH[None], k_TKH[None], positions_T[None], length)
        return q[0], k[0]

    positions_BT = jnp.broadcast_to(positions_BT, q_BTNH.shape[:2])
    return jax.vmap(row)(q_BTNH, k_BTKH, positions_BT, sequence.length)
