"""Llama 3.1 scaling (arXiv 2407.21783): interpolation by wavelength."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.positions.scaling.base import Scaling, check_positive, exact
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class Llama3(Scaling):
    """Long wavelengths, above L / low, turn by theta / factor; short ones, below L / high, by
    theta. In between it is a mean of both, linear in L / wavelength."""

    factor: float
    train_length: int
    low: float = 1.0
    high: float = 4.0

    def __post_init__(self) -> None:
        check_positive(
            factor=self.factor, train_length=self.train_length, low=self.low, high=self.high
        )
        if self.high <= self.low:
            raise FieldError('high', self.high, f'it must be above low, {self.low}')

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        theta = exact(base, dims)
        turns = self.train_length * theta / (2 * math.pi)
        keep = np.clip((turns - self.low) / (self.high - self.low), 0, 1)
        return jnp.asarray(keep * theta + (1 - keep) * theta / self.factor, jnp.float32)

    def describe(self) -> str:
        return f', Llama-3 x{self.factor:g}'
