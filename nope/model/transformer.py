"""The decoder: embedding, scanned layers, final norm. The head is applied by the loss.

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

from nope.attention import Mask
from nope.model import lam
from nope.model.attention import SelfAttention, Sequence
from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.layers import MLP, norm, parameter

ACTIVATIONS = ('batch', 'sequence', 'activation')


class ModelOutput(NamedTuple):
    """hidden [B, T, D] after the final norm; head [D, V]; entropy [L, B, N, T] nats or None."""

    hidden: jax.Array
    head: jax.Array
    entropy: jax.Array | None


def apply(
    config: ModelConfig, variables: Mapping[str, Any], tokens_BT: jax.Array, **arguments: Any
) -> ModelOutput:
    """The decoder as a pure function of {'params', 'lam'}; arguments as `Transformer` takes."""
    output = Transformer(config).apply(variables, tokens_BT, **arguments)
    return cast(ModelOutput, output)


class Block(nn.Module):
    """x + Attention(norm(x)), then x + MLP(norm(x)); shaped for `nn.scan` over layers."""

    config: ModelConfig
    entropy: bool

    @nn.compact
    def __call__(
        self, x_BTD: jax.Array, multiples_N: jax.Array, kind: jax.Array, sequence: Sequence
    ) -> tuple[jax.Array, jax.Array | None]:
        c = self.config
        attended, entropy_BNT = SelfAttention(c, self.entropy, name='attention')(
            norm(c, 'attention_norm')(x_BTD), multiples_N, kind, sequence
        )
        x_BTD = x_BTD + attended
        x_BTD = x_BTD + MLP(c, name='mlp')(norm(c, 'mlp_norm')(x_BTD))
        return nn.with_logical_constraint(x_BTD, ACTIVATIONS), entropy_BNT


class Transformer(nn.Module):
    """A causal decoder over token ids."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        tokens_BT: jax.Array,
        *,
        segments_BT: jax.Array | None = None,
        positions_BT: jax.Array | None = None,
        length: int | jax.Array | None = None,
        entropy: bool = False,
    ) -> ModelOutput:
        """Runs the decoder.

        tokens_BT: int32. segments_BT: int32 document numbers; tokens see their own segment
        only (None: one document). positions_BT: int32, 0-based (None: 0 .. T-1). length: the
        n that lambda forms and dynamic position encodings follow (None: T). entropy: whether
        to return the attention entropy of every layer and head. ValueError for more tokens
        than the position encoding is defined for.
        """
        c = self.config
        T = tokens_BT.shape[1]
        if c.longest is not None and c.longest < T:
            raise ValueError(
                f'tokens_BT has {T} tokens; {c.describe_position()} positions end at {c.longest}'
            )
        embedding_VD = self._matrix('embedding', (c.vocab_size, c.width), ('vocab', 'embed'))
        head_DV = self._head(embedding_VD)
        coefficients_LN = self.variable(
            'lam', 'head', lambda: lam.neutral(c.lam, c.layers, c.heads)
        ).value
        lam.check_shape(coefficients_LN, c.layers, c.heads)
        n = jnp.asarray(T if length is None else length, jnp.float32)
        if positions_BT is None:
            positions_BT = jnp.arange(T, dtype=jnp.int32)[None]
        sequence = Sequence(
            Mask(q_segments_BT=segments_BT, kv_segments_BS=segments_BT),
            positions_BT,
            n,
            self._table(),
        )
        x_BTD, entropy_LBNT = _layers(c, entropy)(
            self._embed(embedding_VD, tokens_BT, sequence),
            c.multiples(coefficients_LN, n),
            jnp.asarray(c.kind_indices),
            sequence,
        )
        hidden_BTD = norm(c, 'final_norm')(x_BTD)
        if c.logit_multiplier != 1:
            hidden_BTD = (hidden_BTD * c.logit_multiplier).astype(hidden_BTD.dtype)
        return ModelOutput(hidden_BTD, head_DV, entropy_LBNT)

    def _embed(
        self, embedding_VD: jax.Array, tokens_BT: jax.Array, sequence: Sequence
    ) -> jax.Array:
        c = self.config
        # Rows come whole from every device: gathered in parts, they would be exchanged afterwards.
        rows_VD = nn.with_logical_constraint(embedding_VD, ('vocab', 'activation'))
        x_BTD = jnp.take(rows_VD, tokens_BT, axis=0).astype(c.dtype)
        x_BTD = c.position.embed(x_BTD, sequence.positions_BT, sequence.table)
        if c.embedding_norm:
            x_BTD = norm(c, 'embedding_norm')(x_BTD)
        return nn.with_logical_constraint(x_BTD, ACTIVATIONS)

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
        if table.stddev is not None:
            init = nn.initializers.normal(table.stddev)
        return parameter(self, 'position', init, table.shape, table.axes)


def _layers(config: ModelConfig, entropy: bool) -> nn.Module:
    """`Block` scanned over layers and rematerialised as the config says."""
    block: type[nn.Module] = Block
    if config.remat != 'none':
        policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
        block = nn.remat(
            Block, prevent_cse=False, policy=policy if config.remat == 'dots' else None
        )
    scanned = nn.scan(
        block,
        variable_axes={'params': 0},
        split_rngs={'params': True},
        in_axes=(0, 0, nn.broadcast),
        length=config.layers,
        unroll=config.unroll or config.layers,
        metadata_params={nn.PARTITION_NAME: 'layers'},
    )
    return scanned(config, entropy, name='layers')
