"""Lambda inside the query weights: the same model without a lambda of its own."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope import sharding
from nope.model import ModelConfig
from nope.model.lam import Constant, neutral
from nope.variables import Variables, lam_of


def check_foldable(model: ModelConfig, length: int | None) -> None:
    """Raises ValueError where lambda cannot be part of the query weights."""
    if model.qk_norm:
        raise ValueError(
            'lambda cannot be folded into the query weights of a model with QK-norm: the norm '
            'that follows them divides every factor out again, and its own weight is shared by '
            "all heads; export it with lam='scale_param'"
        )
    if not isinstance(model.lam, Constant) and length is None:
        raise ValueError(
            f'lambda of the form {type(model.lam).__name__} follows the length of the sequence; '
            'folding it needs the one length it is for'
        )


def fold(
    model: ModelConfig, variables: Variables, length: int | None = None
) -> tuple[ModelConfig, Variables]:
    """The model with W_q (and its bias) multiplied by p_h(length), and lambda neutral.

    Exact, up to the rounding of the product, for every encoding here: a factor per head commutes
    with rotations, and biases are added to the logits after it. ValueError as `check_foldable`.
    """
    check_foldable(model, length)
    multiples_LN = model.multiples(lam_of(variables), 1 if length is None else length)
    attention = dict(variables['params']['layers']['attention'])
    attention['query'] = _times(attention['query'], multiples_LN[:, None, :, None])
    if model.qkv_bias:
        attention['query_bias'] = _times(attention['query_bias'], multiples_LN[:, :, None])
    layers = {**variables['params']['layers'], 'attention': attention}
    plain = dataclasses.replace(model, lam=Constant(), lam_layers='all')
    ones_LN = neutral(plain.lam, model.layers, model.heads)
    lam_LN = sharding.put(np.asarray(ones_LN), lam_of(variables).sharding)
    params = {**variables['params'], 'layers': layers}
    return plain, {**variables, 'params': params, 'lam': {'head': lam_LN}}


def is_neutral(model: ModelConfig, variables: Variables, length: int | None = None) -> bool:
    """Whether lambda changes nothing (at that length, which only forms that follow it need)."""
    multiples_LN = model.multiples(lam_of(variables), 1 if length is None else length)
    return bool(np.all(np.asarray(sharding.fetch(multiples_LN)) == 1))


@jax.jit
def _times(weights: jax.Array, factors: jax.Array) -> jax.Array:
    return weights * factors.astype(jnp.float32)
