"""Position interpolation (Chen et al., 2023, arXiv 2306.15595)."""

from __future__ import annotations

import dataclasses

import jax

from nope.positions.scaling.base import Scaling, Unscaled, check_positive


@dataclasses.dataclass(frozen=True)
class Linear(Scaling):
    """Every frequency divided by `factor`: position n is rotated as n / factor was."""

    factor: float

    def __post_init__(self) -> None:
        check_positive(factor=self.factor)

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        return Unscaled().inverse_frequencies(base, dims, length) / self.factor

    def describe(self) -> str:
        return f', PI x{self.factor:g}'
