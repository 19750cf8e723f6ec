"""Lambda as the product of a law that a model was trained under and a second law."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import Array, Float32, Int, Real

from nope.model.lam.base import Coefficient, Coefficients, Law
from nope.model.lam.scale import times


@dataclasses.dataclass(frozen=True)
class Product(Law):
    """p_h = p_h of `trained` * p_h of `searched`, for a search on top of a trained-in law.

    Coefficients of a head are those of `trained`, which have no gradient and stay as they are,
    and then those of `searched`. It is no entry of the registry: a search makes it where the model
    that it starts from was trained under a law (`experiments/runs/search.py`).
    """

    trained: Law
    searched: Law

    neutral = None

    @property
    def numbers(self) -> int:  # type: ignore[override]
        return self.trained.numbers + self.searched.numbers

    @property
    def follows_length(self) -> bool:  # type: ignore[override]
        return self.trained.follows_length or self.searched.follows_length

    @property
    def follows_position(self) -> bool:  # type: ignore[override]
        return self.trained.follows_position or self.searched.follows_position

    @property
    def acts_inside(self) -> bool:  # type: ignore[override]
        return self.searched.acts_inside

    def acts_within(self, length: int) -> bool:
        return self.searched.acts_within(length)

    @property
    def fresh(self) -> Coefficient:
        return (*_of_head(self.trained), *_of_head(self.searched))

    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        raise NotImplementedError('each of its laws may follow something else')

    def multipliers(
        self,
        coefficients_LN: Float32[Array, 'L N *C'],
        length: int | Real[Array, ''],
        positions_T: Int[Array, 'T'] | None = None,
    ) -> Float32[Array, 'L *T N']:
        kept = self.trained.numbers
        trained_LNC = jax.lax.stop_gradient(coefficients_LN[..., :kept])
        first = _multipliers(self.trained, trained_LNC, length, positions_T)
        second = _multipliers(self.searched, coefficients_LN[..., kept:], length, positions_T)
        return times(first, second)

    def describe(self) -> str:
        return f'{self.trained.describe()} times {self.searched.describe()}'

    @property
    def slug(self) -> str:
        return f'{self.trained.slug}-{self.searched.slug}'

    def check_head_dim(self, head_dim: int) -> None:
        self.trained.check_head_dim(head_dim)
        self.searched.check_head_dim(head_dim)

    def check_start(self, start: Coefficient) -> None:
        self.searched.check_start(start)


def _multipliers(
    law: Law, coefficients_LNC: jax.Array, length: int | jax.Array, positions_T: jax.Array | None
) -> jax.Array:
    one = law.numbers == 1
    return law.multipliers(
        coefficients_LNC[..., 0] if one else coefficients_LNC, length, positions_T
    )


def _of_head(law: Law) -> tuple[float, ...]:
    """As many numbers as a head has; a single one stands for all."""
    coefficient = law.fresh
    return coefficient if isinstance(coefficient, tuple) else (coefficient,) * law.numbers
