"""Coefficients of lambda, float32 [L, N] or [L, N, C]: uniform, initial, and their shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32

from nope.model.lam.base import Coefficient, Law


def uniform(
    coefficient: Coefficient, layers: int, heads: int, numbers: int = 1
) -> Float32[Array, '{layers} {heads} *C']:
    """Coefficients that are the same in all heads, [layers, heads] float32.

    numbers: C, for laws with more than one a head: [layers, heads, C] then. A single number stands
    for all C.
    """
    axes = (layers, heads) if numbers == 1 else (layers, heads, numbers)
    return jnp.full(axes, jnp.asarray(coefficient, jnp.float32), jnp.float32)


def initial(law: Law, layers: int, heads: int) -> jax.Array:
    """Coefficients of a fresh model, [L, N] or [L, N, C] float32: those of `Law.fresh`."""
    return uniform(law.fresh, layers, heads, law.numbers)


def is_neutral(multipliers: np.ndarray) -> bool:
    """Whether these multipliers, of any shape, leave the softmax as it is: every one is 1."""
    return bool(np.all(multipliers == 1))


def check_shape(lam_LN: jax.Array, layers: int, heads: int, numbers: int = 1) -> None:
    """ValueError unless lam is [layers, heads], or [layers, heads, numbers] for several numbers a
    head (a wrong shape would broadcast silently)."""
    wanted = (layers, heads) if numbers == 1 else (layers, heads, numbers)
    if tuple(lam_LN.shape) != wanted:
        raise ValueError(
            f'lam has shape {tuple(lam_LN.shape)}; this model has {layers} layers of {heads} '
            f'heads and takes {wanted}'
        )
