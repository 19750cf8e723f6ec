"""YaRN: NTK by parts with a temperature (Peng et al., 2023, arXiv 2309.00071)."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp

from nope.positions.scaling.base import check_positive
from nope.positions.scaling.by_parts import ByParts


@dataclasses.dataclass(frozen=True)
class Yarn(ByParts):
    """`ByParts`, and queries and keys multiplied by 1 + 0.1 ln(factor): logits by its square.

    multiplier: in place of 1 + 0.1 ln(factor); None for that.
    """

    multiplier: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.multiplier is not None:
            check_positive(multiplier=self.multiplier)

    def attention_factor(self, length: int | jax.Array) -> float:
        if self.multiplier is not None:
            return self.multiplier
        return 1 + 0.1 * math.log(max(self.factor, 1.0))

    def describe(self) -> str:
        return f', YaRN x{self.factor:g}'


@dataclasses.dataclass(frozen=True)
class DynamicYarn(Yarn):
    """YaRN with the factor max(1, n / L): plain RoPE up to the training length.

    `factor` scales n / L: 1, unless the window that was trained with is longer than L.
    """

    factor: float = 1.0
    train_length: int = 2048

    @property
    def follows_length(self) -> bool:
        return True

    def _factor(self, length: int | jax.Array) -> jax.Array:
        relative = self.factor * jnp.asarray(length, jnp.float32) / self.train_length
        return jnp.maximum(relative, 1.0)

    def inverse_frequencies(self, base: float, dims: int, length: int | jax.Array) -> jax.Array:
        return jnp.asarray(self.blend(base, dims, self._factor(length)), jnp.float32)

    def attention_factor(self, length: int | jax.Array) -> float | jax.Array:  # type: ignore
        if self.multiplier is not None:
            return self.multiplier
        return 1 + 0.1 * jnp.log(self._factor(length))

    def describe(self) -> str:
        return ', dynamic YaRN'
