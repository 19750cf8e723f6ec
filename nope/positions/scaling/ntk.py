"""NTK-aware scaling: a larger base, which leaves the fastest dimensions almost as they are."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.positions.scaling.base import Scaling, check_positive, exact, from_base


@dataclasses.dataclass(frozen=True)
class NTK(Scaling):
    """Base b' = b * factor ** (R / (R - 2)): the slowest dimension rotates as under interpolation
    by `factor`, the fastest as before."""

    factor: float

    def __post_init__(self) -> None:
        check_positive(factor=self.factor)

    def scaled_base(self, base: float, dims: int) -> float:
        try:
            return base * self.factor ** (dims / (dims - 2))
        except OverflowError:
            return math.inf

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        return jnp.asarray(exact(self.scaled_base(base, dims), dims), jnp.float32)

    def describe(self) -> str:
        return f', NTK x{self.factor:g}'


@dataclasses.dataclass(frozen=True)
class DynamicNTK(Scaling):
    """NTK-aware scaling with a base that follows the length of the sequence.

    b' = b * (factor * n / L - (factor - 1)) ** (R / (R - 2)) for n > L, else b. All positions of
    a sequence share one b'. The growing cache of older libraries, which mixes bases inside one
    sequence while it is generated, is not copied.
    """

    factor: float
    train_length: int

    def __post_init__(self) -> None:
        check_positive(factor=self.factor, train_length=self.train_length)

    @property
    def follows_length(self) -> bool:
        return True

    def base_at(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        """b' for a sequence of `length` tokens, float32."""
        relative = jnp.asarray(length, jnp.float32) / self.train_length
        stretch = jnp.maximum(self.factor * relative - (self.factor - 1), 1.0)
        return base * stretch ** (dims / (dims - 2))

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        return from_base(self.base_at(base, dims, length), dims)

    def describe(self) -> str:
        return f', dynamic NTK x{self.factor:g}'
