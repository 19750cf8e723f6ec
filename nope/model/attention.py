"""Self-attention of a block: projections, position encoding, lambda, and how far it sees."""

from __future__ import annotations

import functools
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from nope.attention.dropout import Dropout
from nope.model import context, lam
from nope.model.cache import LayerCache
from nope.model.config import ModelConfig
from nope.model.context import AttentionOptions
from nope.model.dropout import head_keys
from nope.model.gates import ForgetGates, forgotten
from nope.model.heads import Attended, Way, attend_by_kind
from nope.model.init import initializer
from nope.model.kinds import LayerKind
from nope.model.layers import Norm, unit_norm
from nope.model.parameters import bias, parameter, project
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats, Attend, ChosenRows, LayerStats
from nope.model.sinks import add_sinks
from nope.model.temperature import AdaptiveTemperature
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


class SelfAttention(nn.Module):
    """Grouped-query self-attention; lambda multiplies the queries after the position encoding.

    keeps: whether the keys and values are returned where there is no cache, for later layers.
    """

    config: ModelConfig
    asked: AskedStats
    keeps: bool = False

    @nn.compact
    def __call__(
        self,
        x_BTD: jax.Array,
        multipliers_N: jax.Array,
        kind: int | jax.Array,
        sequence: Sequence,
        keys_B: jax.Array | None = None,
        cached: LayerCache | None = None,
        source: LayerCache | None = None,
    ) -> tuple[jax.Array, LayerStats, LayerCache | None]:
        """Returns the layer's output [B, T, D], what its attention says of itself, and the cache
        with these tokens in it, or None.

        multipliers_N: p_h, [N], [B, N] or [B, T, N], as `lam.scale_queries` takes them. kind: index
        of the layer's kind, an int if known. keys_B: typed keys of the layer's dropout, None for
        none. Earlier tokens left `cached`. A `source` replaces own keys and values by those of an
        earlier layer, these tokens' included.
        """
        c = self.config
        q_BTNH = self._projected(x_BTD, 'query', c.heads, 'heads')
        q_BTNH = self._normed(q_BTNH, 'query', 'heads', kind)
        k_BTKH, v_BTKH = (None, None) if source is not None else self._keys_values(x_BTD, kind)
        sums_BTN = None
        if c.gate is not None:
            log_gates_BTN = ForgetGates(c, c.gate, name='forget')(x_BTD)
            mask = sequence.mask
            sums_BTN = forgotten(log_gates_BTN, cached, mask.offset, mask.q_segments_BT)
        if c.temperature == 'adaptive':
            adaptive = AdaptiveTemperature(c, name='temperature')
            factors_BTN = adaptive(x_BTD, sequence.positions_BT, kind)
            multipliers_N = lam.times(multipliers_N, factors_BTN)
        ways = [functools.partial(_attend, c, kind, self.asked, self.keeps) for kind in c.kinds]
        sinks_N = None
        if c.sinks:
            sinks_N = parameter(self, 'sinks', nn.initializers.zeros, (c.heads,), ('heads',))
        keys_BN = None
        if keys_B is not None and c.attention_dropout > 0:
            keys_BN = head_keys(keys_B, c.heads)
        heads = Heads(q_BTNH, k_BTKH, v_BTKH, multipliers_N, sums_BTN, sinks_N, keys_BN)
        operands = heads, sequence, cached, source
        if len(ways) == 1 or isinstance(kind, int):
            way = ways[kind if isinstance(kind, int) else 0]
            seen_BTNH, stats, cached = way(*operands)
        else:
            seen_BTNH, stats, cached = jax.lax.switch(kind, ways, *operands)
        if c.output_gate != 'none':
            seen_BTNH *= self._output_gate(x_BTD)
        return self._output(seen_BTNH), stats, cached

    def _keys_values(self, x_BTD: jax.Array, kind: int | jax.Array) -> tuple[jax.Array, jax.Array]:
        """Keys and values before positions."""
        c = self.config
        k_BTKH = self._projected(x_BTD, 'key', c.kv_heads, 'kv_heads')
        v_BTKH = k_BTKH
        if not (isinstance(kind, int) and c.kinds[kind].values_from == 'keys'):
            v_BTKH = self._projected(x_BTD, 'value', c.kv_heads, 'kv_heads')
        if c.value_norm:
            v_BTKH = unit_norm(c, v_BTKH)
        return self._normed(k_BTKH, 'key', 'kv_heads', kind), v_BTKH

    def _projected(self, x_BTD: jax.Array, name: str, heads: int, axis: str) -> jax.Array:
        c = self.config
        shape, axes = (c.width, heads, c.head_dim), ('embed', axis, 'head_dim')
        weight_DNH = parameter(self, name, initializer(c, name), shape, axes, c.dtype)
        projected_BTC = project(x_BTD, weight_DNH.reshape(c.width, -1))
        projected_BTNH = projected_BTC.reshape(*x_BTD.shape[:2], heads, c.head_dim)
        if c.qkv_bias:
            projected_BTNH += bias(self, f'{name}_bias', shape[1:], axes[1:], c.dtype)
        return projected_BTNH

    def _normed(self, x_BTNH: jax.Array, name: str, heads: str, kind: int | jax.Array) -> jax.Array:
        """Queries or keys as layers of that kind use them: after QK-norm, of each head by itself or
        of all together, or as they were projected."""
        c = self.config
        if not c.qk_norm:
            return x_BTNH
        axes = ('norm',) if c.qk_norm_over == 'head' else (heads, 'head_dim')
        if c.qk_norm_weights:
            norm = Norm(c, centred=False, biased=False, axes=axes, name=f'{name}_norm')
            normed_BTNH = norm(x_BTNH)
        else:
            normed_BTNH = unit_norm(c, x_BTNH)
        has = np.array([kind.qk_norm is not False for kind in c.kinds])
        if has.all():
            return normed_BTNH
        if isinstance(kind, int):
            return normed_BTNH if has[kind] else x_BTNH
        return jnp.where(jnp.asarray(has)[kind], normed_BTNH, x_BTNH)

    def _output_gate(self, x_BTD: jax.Array) -> jax.Array:
        """sigmoid(x W), [B, T, N, H] or [B, T, N, 1]."""
        c = self.config
        size = c.head_dim if c.output_gate == 'element' else 1
        shape, axes = (c.width, c.heads, size), ('embed', 'heads', 'head_dim')
        weight_DNH = parameter(self, 'output_gate', initializer(c, 'gate'), shape, axes, c.dtype)
        gate_BTC = jax.nn.sigmoid(project(x_BTD, weight_DNH.reshape(c.width, -1)))
        return gate_BTC.reshape(*x_BTD.shape[:2], c.heads, size)

    def _output(self, seen_BTNH: jax.Array) -> jax.Array:
        c = self.config
        shape, axes = (c.heads, c.head_dim, c.width), ('heads', 'head_dim', 'embed')
        weight_NHD = parameter(self, 'output', initializer(c, 'output'), shape, axes, c.dtype)
        B, T = seen_BTNH.shape[:2]
        out_BTD = project(seen_BTNH.reshape(B, T, -1), weight_NHD.reshape(-1, c.width))
        if c.output_bias:
            out_BTD += bias(self, 'output_bias', (c.width,), ('norm',), c.dtype)
        return out_BTD


def _attend(
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
        return seen if sinks_N is None else _with_sinks(seen, way.rows, sinks_N)

    if config.temperature == 'entropy':
        plain = Way(_weighted(config, AskedStats(entropy=True)), config.weights)
        entropy_BNT = attended(multipliers_N, plain).output.entropy
        assert entropy_BNT is not None
        acts_N = jnp.asarray(config.scaled_heads(kind))
        factors_BTN = jnp.where(acts_N, lam.entropy_multipliers(entropy_BNT), 1.0)
        multipliers_N = lam.times(multipliers_N, factors_BTN)
    rows = sequence.rows
    dropout = None if keys_BN is None else Dropout(config.attention_dropout, keys_BN)
    way = Way(_weighted(config, asked), config.weights, asked.span, rows, dropout)
    output, shape, weights_BNRS = attended(multipliers_N, way)
    if rows is not None and rows.heads_M is not None and weights_BNRS is not None:
        weights_BNRS = jnp.take(weights_BNRS, rows.heads_M, axis=1)
    return output.out, LayerStats(output.entropy, shape, output.max_logit, weights_BNRS), cached


def _with_sinks(seen: Attended, rows: ChosenRows | None, sinks_N: jax.Array) -> Attended:
    """Attention with sinks: weights on keys keep their share of the larger sum."""
    output, shape = add_sinks(seen.output, seen.shape, sinks_N)
    weights_BNRS = seen.rows
    if rows is not None and weights_BNRS is not None:
        kept_BNT = jnp.exp(seen.output.lse - output.lse)
        weights_BNRS *= jnp.take(kept_BNT, rows.queries_R, axis=2)[..., None]
    return Attended(output, shape, weights_BNRS)


def _weighted(config: ModelConfig, asked: AskedStats) -> Attend:
    """Attention by the model's weights. ValueError for the shape of others than softmax's."""
    entropy, max_logit = asked.entropy, asked.max_logit
    if config.weights == 'softmax':
        lse = config.sinks or asked.span is not None
        options = AttentionOptions(entropy, max_logit, lse, config.attention)
        return functools.partial(context.attend, options=options)
    if asked.span is not None:
        raise ValueError(
            f'span is {asked.span}; the shape of attention is that of softmax weights, and the '
            f'model has weights={config.weights!r}'
        )
    return functools.partial(
        context.attend_dense, entropy=entropy, max_logit=max_logit, weights=config.weights
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
