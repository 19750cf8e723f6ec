"""Law of the logits that a model comes with, beside lambda."""

from __future__ import annotations

import dataclasses

from jaxtyping import Array, Float32, Int, Real

from nope.model.lam.base import Law
from nope.model.lam.coefficients import uniform
from nope.model.lam.scalable_softmax import ScalableSoftmax
from nope.model.lam.scalable_softmax_bias import ScalableSoftmaxBias
from nope.runtime.errors import FieldError, one_of

HEADS = 'all', 'nope'


@dataclasses.dataclass(frozen=True)
class GivenLaw:
    """A law whose coefficient is fixed and the same in all heads that it reaches.

    Lambda multiplies it. Ministral 3 grows all queries by `LogFloor` and counts i from 0. Llama 4
    counts from 1 and grows the queries of its layers without position.

    The law is from the registry, the coefficient its number or all of its numbers. The sequence's
    first token has i = `first`, 1 as laws count, or 0. It acts in `heads`: 'all', or 'nope', those
    without position encoding.
    """

    law: Law
    coefficient: float
    first: int = 1
    heads: str = 'all'

    def __post_init__(self) -> None:
        try:
            self.law.check_start(self.coefficient)
        except FieldError as error:
            raise FieldError('coefficient', error.value, error.rule) from error
        if self.first not in (0, 1):
            raise FieldError('first', self.first, 'accepted: 0, 1')
        if self.first == 0 and isinstance(self.law, ScalableSoftmax | ScalableSoftmaxBias):
            raise FieldError('first', 0, 'accepted: 1; these laws have the logarithm of i')
        if self.heads not in HEADS:
            raise FieldError('heads', self.heads, one_of(HEADS))

    def multipliers(
        self,
        layers: int,
        heads: int,
        length: int | Real[Array, ''],
        positions_T: Int[Array, 'T'] | None,
    ) -> Float32[Array, '{layers} *T {heads}']:
        """p of one sequence, as `Law.multipliers` gives it, in all heads."""
        coefficients_LN = uniform(self.coefficient, layers, heads, self.law.numbers)
        if positions_T is not None:
            positions_T = positions_T + (self.first - 1)
        return self.law.multipliers(coefficients_LN, length, positions_T)

    def describe(self) -> str:
        return f'{self.law.describe()} {self.coefficient:g}'
