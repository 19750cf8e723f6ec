"""Coefficients of lambda, [L, N] float32: uniform and initial ones, and their shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nope.model.lam.base import Form


def uniform(coefficient: float, layers: int, heads: int) -> jax.Array:
    """Coefficients [L, N] float32 that are the same in all heads."""
    return jnp.full((layers, heads), coefficient, jnp.float32)


def initial(form: Form, layers: int, heads: int) -> jax.Array:
    """Coefficients [L, N] float32 of a fresh model: those that leave the softmax as it is, or the
    published ones of a form that has no such."""
    coefficient = form.published if form.neutral is None else form.neutral
    if coefficient is None:
        raise TypeError(f'{type(form).__name__} has neither a neutral nor a published coefficient')
    return uniform(coefficient, layers, heads)


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
