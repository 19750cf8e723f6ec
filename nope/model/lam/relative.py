"""Base class for laws of lambda that count lengths and positions in training lengths."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from nope.model.lam.base import Law
from nope.runtime.errors import FieldError

MOST = 2**30  # positions are int32


@dataclasses.dataclass(frozen=True)
class Relative(Law):
    """A law with the training length L among its constants.

    train_length: L in tokens, the config's unless the section gives another. least: the shortest.
    """

    train_length: int

    least: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.train_length < self.least:
            rule = f'it must be at least {self.least}'
            raise FieldError('train_length', self.train_length, rule)
        if self.train_length > MOST:
            raise FieldError('train_length', self.train_length, 'accepted: up to 2**30')

    def acts_within(self, length: int) -> bool:
        return self.acts_inside or length > self.train_length

    def log_beyond(self, tokens: int | jax.Array) -> jax.Array:
        """ln(max(tokens / L, 1)), float32: 0 up to the training length."""
        return jnp.log(jnp.maximum(jnp.asarray(tokens, jnp.float32) / self.train_length, 1.0))
