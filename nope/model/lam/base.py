"""Base class for laws of lambda: from stored coefficients to multipliers of the softmax scale."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int, Real

from nope.runtime.errors import FieldError

Coefficient = float | tuple[float, ...]  # of one head, a tuple for laws with several numbers
Coefficients = tuple[jax.Array, ...]  # the C numbers of all heads, an array for each


@dataclasses.dataclass(frozen=True)
class Law(abc.ABC):
    """A law for the multiplier p of the softmax scale, which is 1/sqrt(H) where the model has no
    other: softmax_j(p / sqrt(H) * q_i . k_j).

    numbers: C, coefficients of one head.
    neutral: coefficient under which p is exactly 1 for every length and position (a single number
        stands for all C); None where there is none.
    published: the source's coefficient for all heads. None where it gives none.
    follows_length: whether p depends on n, the tokens in the sequence.
    follows_position: whether p depends on i, the position of the query.
    acts_inside: whether p depends on the coefficient up to the training length.
    starts_from_uniform: whether a search may start from a grid's best uniform multiplier;
        only where the coefficient is p itself.

    A law's fields are its constants; they are part of a run's identity. A value out of range is a
    `FieldError`, which `from_section` names by what was typed.
    """

    numbers: ClassVar[int] = 1
    neutral: ClassVar[Coefficient | None]
    published: ClassVar[Coefficient | None] = None
    follows_length: ClassVar[bool] = False
    follows_position: ClassVar[bool] = False
    acts_inside: ClassVar[bool] = True
    starts_from_uniform: ClassVar[bool] = False

    @abc.abstractmethod
    def multiplier(self, c: Coefficients, at: int | jax.Array) -> jax.Array:
        """p, float32, of coefficients c that broadcast against `at`.

        at: the length n, a scalar, usually traced. For laws by position it is i, int32 [T, 1]: the
        query's position, counted from 1, also in layers with a window.
        """

    def multipliers(
        self,
        coefficients_LN: Float32[Array, 'L N *C'],
        length: int | Real[Array, ''],
        positions_T: Int[Array, 'T'] | None = None,
    ) -> Float32[Array, 'L *T N']:
        """p of one sequence, float32: [L, N], or [L, T, N] of a law that follows the position.

        coefficients_LN: float32, [L, N, C] of a law with C > 1 numbers a head. A law of the
        position needs positions_T, int32, 0-based.
        """
        c: Coefficients = (coefficients_LN,)
        if self.numbers > 1:
            c = tuple(coefficients_LN[..., k] for k in range(self.numbers))
        if not self.follows_position:
            return self.multiplier(c, length)
        assert positions_T is not None
        return self.multiplier(tuple(one_LN[:, None] for one_LN in c), (positions_T + 1)[:, None])

    def acts_within(self, length: int) -> bool:
        """Whether p depends on the coefficient in sequences of up to `length` tokens."""
        return self.acts_inside

    @abc.abstractmethod
    def describe(self) -> str:
        """A word or two for captions."""

    @property
    def fresh(self) -> Coefficient:
        """Coefficient of a fresh model: the neutral one, or the published one of a law without.
        TypeError where there is neither."""
        coefficient = self.published if self.neutral is None else self.neutral
        if coefficient is None:
            name = type(self).__name__
            raise TypeError(f'{name} has neither a neutral nor a published coefficient')
        return coefficient

    @property
    def slug(self) -> str:
        """Its part in the name of a search's run folder."""
        return type(self).__name__.lower()

    def check_head_dim(self, head_dim: int) -> None:  # noqa: B027  # most are of any size
        """FieldError where the law is of heads of another size."""

    def check_start(self, start: Coefficient) -> None:
        """FieldError for a coefficient from which no search can start. A single number stands for
        all C of them."""
        numbers = start if isinstance(start, tuple) else (start,)
        if isinstance(start, tuple) and len(start) != self.numbers:
            raise FieldError('start', start, f'it takes {self.numbers} for every head')
        if not all(map(math.isfinite, numbers)):
            raise FieldError('start', start, 'it must be finite')

    def check_foldable(self, length: int | None) -> None:
        """ValueError unless every head has one multiplier in all sequences of `length` tokens
        (None: of any length), so that it can be a factor of the head's W_q."""
        name = type(self).__name__
        if self.follows_position:
            raise ValueError(
                f'lambda of the law {name} follows the position of the query; W_q is the same '
                "at every position, and no factor of it can stand for this lambda (lam='none' "
                'leaves it out)'
            )
        if self.follows_length and length is None:
            raise ValueError(
                f'lambda of the law {name} follows the length of the sequence; one factor for '
                'every head needs the one length it is for'
            )


def log_of_keys(keys: int | jax.Array) -> jax.Array:
    """ln i, float32 [T, 1]."""
    # Of [T]: compilers fold a constant column with other digits.
    return jnp.log1p((jnp.asarray(keys)[:, 0] - 1).astype(jnp.float32))[:, None]
