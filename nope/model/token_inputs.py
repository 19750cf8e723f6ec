"""Per-layer token embeddings, which every layer reads besides the residual stream (Gemma 3n).

Layer l adds norm(W_out (act(W_in x) * u_l)) to its x, where

    u = (norm(W e / sqrt(D)) + sqrt(P) E[token]) / sqrt(2)

is one vector of L P numbers a token, P for each layer: of the embedding e that the first layer
reads, and from a second table E.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from nope.model.config import ModelConfig
from nope.model.init import initializer
from nope.model.layers import Norm, activate, split_over_mesh
from nope.model.parameters import parameter, project


class TokenInputs(nn.Module):
    """Per-layer embeddings of the tokens: u of every layer."""

    config: ModelConfig

    @nn.compact
    def __call__(self, tokens_BT: jax.Array, embedded_BTD: jax.Array) -> jax.Array:
        """[L, B, T, P]. embedded_BTD: what the first layer reads."""
        c = self.config
        P = c.token_width
        assert P is not None
        of_token_BTC = self._rows(tokens_BT).astype(c.dtype) * P**0.5
        shape, axes = (c.width, c.layers * P), ('embed', 'mlp')
        weight_DC = parameter(self, 'projection', initializer(c, 'mlp_in'), shape, axes, c.dtype)
        made_BTC = project(embedded_BTD, weight_DC) * c.width**-0.5
        norm = Norm(c, centred=False, biased=False, name='norm')
        made_BTLP, of_token_BTLP = (
            x.reshape(*tokens_BT.shape, c.layers, P) for x in (made_BTC, of_token_BTC)
        )
        made_BTLP = (norm(made_BTLP) + of_token_BTLP) * 2**-0.5
        return jnp.moveaxis(made_BTLP.astype(c.dtype), 2, 0)

    def _rows(self, tokens_BT: jax.Array) -> jax.Array:
        """Rows of the per-layer embedding table. It is larger than all layers together: a device
        looks all tokens up in its columns, and no device ever has the whole."""
        c = self.config
        assert c.token_width is not None
        shape, axes = (c.vocab_size, c.layers * c.token_width), ('vocab', 'embed')
        table_VC = parameter(self, 'embedding', initializer(c, 'embedding'), shape, axes)
        table_VC = nn.with_logical_constraint(table_VC, axes)
        rows_BTC = jnp.take(table_VC, tokens_BT, axis=0)
        rows_BTC = nn.with_logical_constraint(rows_BTC, (None, None, 'embed'))
        return split_over_mesh(rows_BTC)


class TokenInput(nn.Module):
    """Gated residual update of a layer by its own per-layer embedding u."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BTD: jax.Array, input_BTP: jax.Array) -> jax.Array:
        c = self.config
        P = input_BTP.shape[-1]
        shape, axes = (c.width, P), ('embed', 'mlp')
        in_DP = parameter(self, 'gate', initializer(c, 'mlp_in'), shape, axes, c.dtype)
        shape, axes = (P, c.width), ('mlp', 'embed')
        out_PD = parameter(self, 'output', initializer(c, 'token_out'), shape, axes, c.dtype)
        inner_BTP = activate(c.activation, project(x_BTD, in_DP)) * input_BTP
        norm = Norm(c, centred=False, biased=False, name='norm')
        return norm(project(inner_BTP, out_PD))
