"""Base class for RoPE frequency scaling."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Rule for RoPE frequencies beyond the training length, from which every rule derives.

    R below is the number of rotated dimensions, L the training length, n the length of the whole
    sequence (in generation: the final length). All positions of a sequence share the frequencies
    for n.
    """

    @property
    def follows_length(self) -> bool:
        """True for a rule whose frequencies depend on n."""
        return False

    def check(self, dims: int) -> None:
        """Raises FieldError for a number R = dims of dimensions that the rule does not support."""

    def check_base(self, base: float) -> None:  # most take any
        """Raises FieldError for a base of the frequencies that the rule does not support."""

    def scaled_base(self, base: float, dims: int) -> float:
        """The base of the frequencies, of a rule with one of its own at all lengths; inf where it
        is beyond all numbers."""
        return base

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        """Angles per position, [R/2] float32, for a sequence of `length` tokens."""
        raise NotImplementedError

    @property
    def attention_factor(self) -> float | None:
        """Multiplier of queries and keys in the first `dims` dimensions; None for 1.

        It is part of the rotation and no law of lambda, which multiplies all dimensions alike.
        """
        return None

    def describe(self) -> str:
        """'' or ', ' and a few words."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Unscaled(Scaling):
    """Frequencies of pre-training at every length: base ** (-2j / R)."""

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        return from_base(jnp.float32(base), dims)

    def describe(self) -> str:
        return ''


def from_base(base: jax.Array, dims: int) -> jax.Array:
    """base ** (-2j / R), j = 0 .. R/2 - 1, float32."""
    exponents = jnp.arange(0, dims, 2, dtype=jnp.float32) / dims
    return jnp.power(base, -exponents)


def exact(base: float, dims: int) -> np.ndarray:
    """base ** (-2j / R) for a base that is known before tracing, in float64."""
    return base ** (-np.arange(0, dims, 2) / dims)


def check_positive(**fields: float) -> None:
    """Raises FieldError for a number that is not finite or not above 0."""
    for name, value in fields.items():
        if not (math.isfinite(value) and value > 0):
            raise FieldError(name, value, 'it must be finite and above 0')
