"""Lambda inside the query weights: the same model without a lambda of its own."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.model.stacks import Layers, map_attention
from nope.variables import Variables, lam_of, with_uniform_lam


def check_foldable(model: ModelConfig, length: int | None) -> None:
    """Raises ValueError where lambda cannot be part of the query weights."""
    normed_L1 = model.layers_with_qk_norm[:, None]
    acts_LN = model.heads_with_lam
    if model.qk_norm_over == 'head' and np.any(normed_L1 & acts_LN):
        raise ValueError(
            'lambda cannot be folded into the query weights of a model with QK-norm of each head: '
            'the norm that follows them divides every factor out again, and its own weight is '
            "shared by all heads; export it with lam='scale_param'"
        )
    model.lam.check_foldable(length)


def fold(
    model: ModelConfig, variables: Variables, length: int | None = None
) -> tuple[ModelConfig, Variables]:
    """The model with W_q (and its bias) multiplied by p_h(length), and lambda neutral; behind
    QK-norm over the whole projection, the norm's weights, which heads do not share.

    Exact, up to the rounding of the product, for every encoding here: a factor per head commutes
    with rotations, and biases are added to the logits after it. ValueError as `check_foldable`.
    """
    check_foldable(model, length)
    multipliers_LN = model.multipliers(lam_of(variables), 1 if length is None else length)
    behind_LN = jnp.ones_like(multipliers_LN)
    if model.qk_norm_over == 'projection':
        normed_L1 = model.layers_with_qk_norm[:, None]
        behind_LN = jnp.where(normed_L1, multipliers_LN, 1.0)
        multipliers_LN = jnp.where(normed_L1, 1.0, multipliers_LN)

    def folded(layer: Layers, multipliers_N: jax.Array, behind_N: jax.Array) -> Layers:
        attention = dict(layer['attention'])
        if model.qk_norm_over == 'projection':
            offset = float(model.norm_offset)
            weights_NH = attention['query_norm']['scale'] + offset
            attention['query_norm'] = {'scale': _times(weights_NH, behind_N[:, None]) - offset}
        attention['query'] = _times(attention['query'], multipliers_N[:, None])
        if model.qkv_bias:
            attention['query_bias'] = _times(attention['query_bias'], multipliers_N[:, None])
        return {**layer, 'attention': attention}

    layers = map_attention(model, folded, variables['params']['layers'], multipliers_LN, behind_LN)
    # A temperature acts in the same heads, and stays there.
    layers_of_lam = 'all' if model.temperature == 'none' else model.lam_layers
    plain = dataclasses.replace(model, lam=Constant(), lam_layers=layers_of_lam)
    params = {**variables['params'], 'layers': layers}
    return plain, with_uniform_lam({**variables, 'params': params}, Constant.neutral)


@jax.jit
def _times(weights: jax.Array, factors: jax.Array) -> jax.Array:
    return weights * factors.astype(jnp.float32)
