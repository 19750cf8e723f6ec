"""Self-attention of a block: projections, position encoding, lambda, and how far it sees."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import flax.linen as nn
import jax

from nope.attention import Mask
from nope.model import context, lam
from nope.model.config import LayerKind, ModelConfig
from nope.model.init import initializer
from nope.model.layers import Norm, bias, parameter, project


class Sequence(NamedTuple):
    """What all layers know of the tokens they work on.

    mask: who sees whom. positions_BT: int32, 0-based. length: the n that lambda forms and dynamic
    encodings follow. table: the position encoding's learned array, if it has one.
    """

    mask: Mask
    positions_BT: jax.Array
    length: jax.Array
    table: jax.Array | None


class SelfAttention(nn.Module):
    """Grouped-query self-attention; lambda multiplies the queries after the position encoding."""

    config: ModelConfig
    entropy: bool

    @nn.compact
    def __call__(
        self, x_BTD: jax.Array, multiples_N: jax.Array, kind: jax.Array, sequence: Sequence
    ) -> tuple[jax.Array, jax.Array | None]:
        """Returns the layer's output [B, T, D] and the entropy [B, N, T] in nats, or None.

        kind: int32 scalar, which of the model's kinds of layers this one is.
        """
        c = self.config
        q_BTNH = self._project(x_BTD, 'query', c.heads, 'heads')
        k_BTKH = self._project(x_BTD, 'key', c.kv_heads, 'kv_heads')
        v_BTKH = self._project(x_BTD, 'value', c.kv_heads, 'kv_heads')
        if c.qk_norm:
            q_BTNH = Norm(c, centred=False, biased=False, name='query_norm')(q_BTNH)
            k_BTKH = Norm(c, centred=False, biased=False, name='key_norm')(k_BTKH)
        ways = [functools.partial(_attend, c, kind, self.entropy) for kind in c.kinds]
        operands = (q_BTNH, k_BTKH, v_BTKH, multiples_N, sequence)
        if len(ways) == 1:
            seen_BTNH, entropy_BNT = ways[0](*operands)
        else:
            seen_BTNH, entropy_BNT = jax.lax.switch(kind, ways, *operands)
        return self._output(seen_BTNH), entropy_BNT

    def _project(self, x_BTD: jax.Array, name: str, heads: int, axis: str) -> jax.Array:
        c = self.config
        shape, axes = (c.width, heads, c.head_dim), ('embed', axis, 'head_dim')
        weight_DNH = parameter(self, name, initializer(c, name), shape, axes, c.dtype)
        projected_BTC = project(x_BTD, weight_DNH.reshape(c.width, -1))
        projected_BTNH = projected_BTC.reshape(*x_BTD.shape[:2], heads, c.head_dim)
        if c.qkv_bias:
            projected_BTNH += bias(self, f'{name}_bias', shape[1:], axes[1:], c.dtype)
        return projected_BTNH

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
    entropy: bool,
    q_BTNH: jax.Array,
    k_BTKH: jax.Array,
    v_BTKH: jax.Array,
    multiples_N: jax.Array,
    sequence: Sequence,
) -> tuple[jax.Array, jax.Array | None]:
    """Attention as layers of that kind do it: its output [B, T, N, H] and entropy."""
    position = kind.position
    q_BTNH, k_BTKH = position.encode(q_BTNH, k_BTKH, sequence.positions_BT, sequence.length)
    seen = context.attend(
        lam.scale_queries(q_BTNH, multiples_N, config.softmax_scale),
        k_BTKH,
        v_BTKH,
        mask=dataclasses.replace(sequence.mask, window=kind.window or None),
        bias=position.bias(config.heads, sequence.table),
        entropy=entropy,
        implementation=config.attention or None,
    )
    return seen.out, seen.entropy
