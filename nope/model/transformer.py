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
from nope.model.config import ModelConfig
from nope.model.layers import (
    RMSNorm,
    SelfAttention,
    SwiGLU,
    parameter,
    weight_initializer,
)

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
        self,
        x_BTD: jax.Array,
        multiples_N: jax.Array,
        mask: Mask,
        positions_BT: jax.Array,
        length: jax.Array,
    ) -> tuple[jax.Array, jax.Array | None]:
        c = self.config
        attended, entropy_BNT = SelfAttention(c, name='attention')(
            RMSNorm(c, name='attention_norm')(x_BTD),
            multiples_N,
            mask,
            positions_BT,
            length,
            self.entropy,
        )
        x_BTD = x_BTD + attended
        x_BTD = x_BTD + SwiGLU(c, name='mlp')(RMSNorm(c, name='mlp_norm')(x_BTD))
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
        to return the attention entropy of every layer and head.
        """
        c = self.config
        embedding_VD = parameter(
            self,
            'embedding',
            weight_initializer(c),
            (c.vocab_size, c.width),
            ('vocab', 'embed'),
        )
        head_DV = embedding_VD.T.astype(c.dtype) if c.tied_head else self._head()
        coefficients = self.variable(
            'lam', 'head', lambda: lam.neutral(c.lam, c.layers, c.heads)
        ).value
        lam.check_shape(coefficients, c.layers, c.heads)
        n = jnp.asarray(tokens_BT.shape[1] if length is None else length, jnp.float32)
        if positions_BT is None:
            positions_BT = jnp.arange(tokens_BT.shape[1], dtype=jnp.int32)[None]
        mask = Mask(q_segments_BT=segments_BT, kv_segments_BS=segments_BT)

        # Rows come whole from every device: gathered in parts, they would be exchanged afterwards.
        rows_VD = nn.with_logical_constraint(embedding_VD, ('vocab', 'activation'))
        x_BTD = jnp.take(rows_VD, tokens_BT, axis=0).astype(c.dtype)
        x_BTD = nn.with_logical_constraint(x_BTD, ACTIVATIONS)
        x_BTD, entropy_LBNT = _layers(c, entropy)(
            x_BTD, c.lam.multiples(coefficients, n), mask, positions_BT, n
        )
        return ModelOutput(RMSNorm(c, name='final_norm')(x_BTD), head_DV, entropy_LBNT)

    def _head(self) -> jax.Array:
        c = self.config
        shape, axes = (c.width, c.vocab_size), ('embed', 'vocab')
        return parameter(self, 'head', weight_initializer(c), shape, axes, c.dtype)


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
        in_axes=(0, nn.broadcast, nn.broadcast, nn.broadcast),
        length=config.layers,
        unroll=config.unroll or config.layers,
        metadata_params={nn.PARTITION_NAME: 'layers'},
    )
    return scanned(config, entropy, name='layers')
