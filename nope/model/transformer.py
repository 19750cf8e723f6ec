"""The model: embedding, layers, final norm. The head is applied by the loss.

Everything the model needs is in its arguments: `{'params': ..., 'lam': {'head': [L, N]}}`,
tokens, and how many tokens the sequence has. Losses take the final hidden states and the
head matrix, so that [B, T, V] never has to exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, Key, Real

from nope.model import lam
from nope.model.blocks import LayersApart, cached_layers, scanned_layers
from nope.model.cache import Cache
from nope.model.config import ModelConfig
from nope.model.dropout import Place, layer_keys
from nope.model.init import initializer
from nope.model.layers import drop, norm, split_over_mesh
from nope.model.parameters import parameter
from nope.model.sequence import Sequence, of_cache, of_tokens
from nope.model.shape import AskedStats, AttentionShape, check_queries
from nope.model.token_inputs import TokenInputs


class ModelOutput(NamedTuple):
    """hidden [B, T, D] after the final norm, and head [D, V]. The others are None unless asked for.
    The cache has these tokens in it. Entropy (nats), shape and largest logits are [L, B, N, T],
    weights of chosen queries [L, B, N, R, T], of the L layers that have attention."""

    hidden: Float[Array, 'B T D']
    head: Float[Array, 'D V']
    entropy: Float32[Array, 'L B N T'] | None
    cache: Cache | None = None
    shape: AttentionShape | None = None
    max_logit: Float32[Array, 'L B N T'] | None = None
    rows: Float32[Array, 'L B N R T'] | None = None


def apply(
    config: ModelConfig,
    variables: Mapping[str, Any],
    tokens_BT: Int[Any, 'B T'],  # of JAX or numpy
    **arguments: Any,
) -> ModelOutput:
    """The decoder as a pure function of {'params', 'lam'}; arguments as `Transformer` takes."""
    output = Transformer(config).apply(variables, tokens_BT, **arguments)
    return cast(ModelOutput, output)


class Transformer(nn.Module):
    """A decoder over token ids, or an encoder where the model is not causal."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        tokens_BT: Int[Any, 'B T'],
        *,
        segments_BT: Int[Any, 'B T'] | None = None,
        positions_BT: Int[Any, '#B T'] | None = None,
        length: int | Real[Any, ''] | Real[Any, 'B'] | None = None,
        entropy: bool = False,
        cache: Cache | None = None,
        span: int | None = None,
        max_logit: bool = False,
        queries_R: Int[Any, 'R'] | None = None,
        keys_B: Key[Array, 'B'] | None = None,
    ) -> ModelOutput:
        """Runs the decoder.

        tokens_BT: int32. segments_BT: int32 document numbers; tokens see their own segment
        only (None: one document). positions_BT: int32, 0-based (None: 0 .. T-1, or spread over
        the model's range, and then given ones are for its encodings alone). length: the
        n that lambda laws and dynamic position encodings follow (None: T). entropy: whether
        to return the attention entropy of every layer and head. cache: of the tokens before
        these, which says all of segments, positions and length; the parameters' layers are then
        apart (`nope.model.decoding.unstack`). span: latest keys whose weight the shape of attention
        sums up (`nope.model.shape`), None for no shape; without a cache only. max_logit: whether to
        return the largest logit of every row, without a cache only. queries_R: int32
        positions whose attention weights are returned, without a cache only. keys_B: typed keys of
        the rows' dropout, without a cache only; None for no dropout, as everywhere but in training.
        ValueError for more tokens than the position encoding has positions or the cache has free
        slots, for arguments that exclude a cache, and for queries outside the sequence.
        """
        c = self.config
        T = tokens_BT.shape[1]
        _check_tokens(c, T, cache)
        if cache is not None:
            alone = {
                'segments_BT': segments_BT, 'positions_BT': positions_BT, 'length': length,
                'span': span, 'max_logit': max_logit or None, 'queries_R': queries_R,
                'keys_B': keys_B,
            }  # fmt: skip
            for name, value in alone.items():
                if value is not None:
                    raise ValueError(
                        f'{name} is given with a cache, which says it or has no part for it'
                    )
        if queries_R is not None:
            check_queries(queries_R, T)
        embedding_VD = self._matrix('embedding', (c.vocab_size, c.width), ('vocab', 'embed'))
        head_DV = self._head(embedding_VD)
        coefficients_LN = self.variable(
            'lam', 'head', lambda: lam.initial(c.lam, c.attention_layers, c.heads)
        ).value
        lam.check_shape(coefficients_LN, c.attention_layers, c.heads, c.lam.numbers)
        if cache is None:
            sequence = of_tokens(
                c, tokens_BT, self._table(),
                segments_BT=segments_BT, positions_BT=positions_BT, length=length,
                queries_R=queries_R,
            )  # fmt: skip
        else:
            sequence = of_cache(c, T, cache, self._table())
        x_BTD = self._embed(embedding_VD, tokens_BT, sequence)
        x_BTD = drop(c, x_BTD, keys_B, Place.EMBEDDING)
        multipliers_LN = _multipliers(c, coefficients_LN, sequence)
        inputs_LBTP = None
        if c.token_width is not None:
            inputs_LBTP = TokenInputs(c, name='token_inputs')(tokens_BT, x_BTD)
        asked = AskedStats(entropy, span, max_logit)
        keys_LB = None if keys_B is None or not c.drops else layer_keys(keys_B, c.layers)
        if cache is None and c.apart:
            layers_apart = LayersApart(c, asked, name='layers')
            x_BTD, stats = layers_apart(x_BTD, multipliers_LN, sequence, keys_LB, inputs_LBTP)
        elif cache is None:
            kinds_L = jnp.asarray(c.kind_indices)
            keys = () if keys_LB is None else (keys_LB,)
            x_BTD, (stats, _) = scanned_layers(c, asked, bool(keys))(
                x_BTD, multipliers_LN, kinds_L, sequence, *keys
            )
        else:
            layers: Mapping[str, Any] = self.get_variable('params', 'layers')
            x_BTD, stats, cache = cached_layers(
                c, entropy, layers, x_BTD, multipliers_LN, sequence, cache, inputs_LBTP
            )
        hidden_BTD = drop(c, norm(c, 'final_norm')(x_BTD), keys_B, Place.FINAL)
        if c.logit_multiplier != 1:
            multiplied_BTD = hidden_BTD.astype(jnp.float32) * c.logit_multiplier
            hidden_BTD = multiplied_BTD.astype(hidden_BTD.dtype)
        if cache is None:
            # Whole from every device before the loss, which uses it a chunk of tokens at a time.
            head_DV = nn.with_logical_constraint(head_DV, ('activation', 'vocab'))
        return ModelOutput(hidden_BTD, head_DV, stats.entropy, cache, *stats[1:])

    def _embed(self, embedding_VD: jax.Array, tokens_BT: Any, sequence: Sequence) -> jax.Array:
        c = self.config
        # Rows come whole from every device: gathered in parts, they would be exchanged afterwards.
        rows_VD = nn.with_logical_constraint(embedding_VD, ('vocab', 'activation'))
        x_BTD = jnp.take(rows_VD, tokens_BT, axis=0).astype(c.dtype)
        if c.embedding_multiplier != 1:
            x_BTD = x_BTD * c.embedding_multiplier
        x_BTD = c.position.embed(x_BTD, sequence.for_encodings, sequence.table)
        if c.embedding_norm:
            x_BTD = norm(c, 'embedding_norm')(x_BTD)
        return split_over_mesh(x_BTD)

    def _head(self, embedding_VD: jax.Array) -> jax.Array:
        c = self.config
        if c.tied_head:
            return embedding_VD.T.astype(c.dtype)
        return self._matrix('head', (c.width, c.vocab_size), ('embed', 'vocab')).astype(c.dtype)

    def _matrix(self, name: str, shape: tuple[int, ...], axes: tuple[str, ...]) -> jax.Array:
        return parameter(self, name, initializer(self.config, name), shape, axes)

    def _table(self) -> jax.Array | None:
        """The position encoding's learned array, which all layers share."""
        table = self.config.table
        if table is None:
            return None
        init = initializer(self.config, 'embedding')
        if table.draw is not None:
            init = table.draw
        elif table.stddev is not None:
            init = nn.initializers.normal(table.stddev)
        return parameter(self, 'position', init, table.shape, table.axes)


def _check_tokens(config: ModelConfig, tokens: int, cache: Cache | None) -> None:
    given = f'tokens_BT has {tokens} tokens'
    if cache is not None:
        # What is filled may be traced: callers that know the whole length check it.
        filled = cache.filled if isinstance(cache.filled, int) else 0
        if filled + tokens > cache.slots:
            before = f' and cache.filled is {filled}' if filled else ''
            raise ValueError(f'{given}{before}; the slots of the cache are {cache.slots}')
    elif config.longest is not None and config.longest < tokens:
        end = f'{config.describe_position()} positions end at {config.longest}'
        raise ValueError(f'{given}; {end}')


def _multipliers(config: ModelConfig, coefficients_LN: jax.Array, sequence: Sequence) -> jax.Array:
    """Multipliers of every layer, [L, N], or [L, B, N] where rows have their own lengths.

    Laws by position make [L, B, T, N], with B = 1 where rows do not differ.
    """
    n, positions_BT = sequence.length, sequence.positions_BT
    if config.scale_follows_position:
        if n.ndim:
            positions_BT = jnp.broadcast_to(positions_BT, (n.size, positions_BT.shape[1]))
        axes = (None, 0 if n.ndim else None, 0)
        rows = jax.vmap(config.scale, in_axes=axes, out_axes=1)
        return rows(coefficients_LN, n, positions_BT)
    if n.ndim == 0:
        return config.scale(coefficients_LN, n)
    return jax.vmap(config.scale, in_axes=(None, 0), out_axes=1)(coefficients_LN, n)
