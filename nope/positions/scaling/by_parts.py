"""NTK-by-parts scaling: high frequencies stay, low ones are interpolated, with a ramp between."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from nope.positions.scaling.base import Scaling, check_positive, exact
from nope.runtime.errors import FieldError


@dataclasses.dataclass(frozen=True)
class ByParts(Scaling):
    """(1 - keep_j) theta_j / factor + keep_j theta_j (Peng et al., 2023, arXiv 2309.00071).

    A dimension that completes more than `fast` rotations within L is kept, one that completes
    fewer than `slow` is interpolated.

    Between them keep_j falls linearly with the dimension's index, as in all implementations, and
    not with its number of rotations, as the paper writes it.

    truncate: whether the ramp's ends are rounded outwards to whole dimensions.
    """

    factor: float
    train_length: int
    slow: float = 1.0
    fast: float = 32.0
    truncate: bool = True

    def __post_init__(self) -> None:
        check_positive(
            factor=self.factor, train_length=self.train_length, slow=self.slow, fast=self.fast
        )
        if self.fast <= self.slow:
            raise FieldError('fast', self.fast, f'it must be above slow, {self.slow}')

    def keep(self, base: float, dims: int) -> np.ndarray:
        """The share of every frequency that stays, float64 [R/2]."""
        low, high = (self._index(turns, base, dims) for turns in (self.fast, self.slow))
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dims - 1)
        high += 0.001 if low == high else 0
        return 1 - np.clip((np.arange(dims // 2) - low) / (high - low), 0, 1)

    def check_base(self, base: float) -> None:
        if base <= 1:
            raise FieldError('base', base, 'accepted with this scaling: above 1, slower by pairs')

    def _index(self, turns: float, base: float, dims: int) -> float:
        """Real-valued index of the pair that completes this many rotations within L, counted in
        dimensions of R as the implementations do."""
        wavelength = self.train_length / (2 * math.pi * turns)
        return dims * math.log(wavelength) / (2 * math.log(base))

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        theta, keep = exact(base, dims), self.keep(base, dims)
        return jnp.asarray(theta * keep + theta * (1 - keep) / self.factor, jnp.float32)

    def describe(self) -> str:
        return f', NTK by parts x{self.factor:g}'
