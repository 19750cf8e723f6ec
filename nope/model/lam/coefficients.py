"""Coefficients of lambda, [L, N] float32: uniform and neutral ones, and their shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nope.model.lam.base import Form


def uniform(coefficient: float, layers: int, heads: int) -> jax.Array:
    """Coefficients [L, N] float32 that are the same in all heads."""
    return jnp.full((layers, heads), coefficient, jnp.float32)


def neutral(form: Form, layers: int, heads: int) -> jax.Array:
    """Coefficients [L, N] float32 that leave the base model unchanged."""
    return uniform(form.neutral, layers, heads)


def is_neutral(multipliers: np.ndarray) -> bool:
    """Whether these multipliers, of any shape, leave the softmax as it is: every one is 1."""
    return bool(np.all(multipliers == 1))


def check_shape(lam_LN: jax.Array, layers: int, heads: int) -> None:
    """ValueError unless lam is [layers, heads] (a wrong shape would broadcast silently)."""
    if tuple(lam_LN.shape) != (layers, heads):
        raise ValueError(
            f'lam has shape {tuple(lam_LN.shape)}; this model has {layers} layers of {heads} '
            f'heads and takes ({layers}, {heads})'
        )
