"""Base class of biases on the logits that depend on the distance between query and key alone.

distance = position of the query - position of the key. Over T queries and S keys there are
T + S - 1 of them, so O(T + S) numbers for each head hold all of a bias, and its parameters get
their gradients through those (`line`).
"""

from __future__ import annotations

import abc

import jax
import jax.numpy as jnp


class Bias(abc.ABC):
    """Bias by distance, one function for each head. A product q . k becomes q . k + m. With factors
    a by distance it becomes a q . k + m. Every subclass is a frozen dataclass and a pytree, whose
    arrays have the heads as their last axis; parameters of 0 leave the products as they are."""

    @property
    @abc.abstractmethod
    def heads(self) -> int:
        """Number of query heads."""

    @abc.abstractmethod
    def check(self) -> None:
        """Raises ValueError for parameters of a wrong shape or range."""

    @abc.abstractmethod
    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """Addends m at each of the distances, float32 [N, D] (float64 for such parameters).

        Distances of keys behind the query are negative. Masked distances need finite values and
        gradients too, since 0 times infinity is no number."""

    def factors_by_distance(self, distance_D: jax.Array) -> jax.Array | None:
        """The factors a of the products at each of the distances, as `by_distance`; None where
        they are 1. They are constants: no gradient passes to their parameters."""
        return None


def precise(parameters: jax.Array) -> jax.Array:
    """Parameters in the dtype that a bias is computed in: float32, or float64 for such."""
    is_double = jnp.result_type(parameters) == jnp.float64
    return jnp.asarray(parameters, jnp.float64 if is_double else jnp.float32)


def check_by_head(name: str, parameters: jax.Array) -> None:
    """ValueError for parameters that are not one number a head."""
    if jnp.ndim(parameters) != 1:
        raise ValueError(f'bias.{name} has shape {jnp.shape(parameters)}, expected [N]')
