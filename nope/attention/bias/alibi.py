"""Bias that falls linearly with the distance (ALiBi)."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from nope.attention.bias.base import Bias, check_by_head, precise


@functools.partial(jax.tree_util.register_dataclass, data_fields=('slopes_N',), meta_fields=())
@dataclasses.dataclass(frozen=True)
class AlibiBias(Bias):
    """-slope_n * |distance| (Press et al., 2022, arXiv:2108.12409).

    slopes_N: float, [N]. They are constants: no gradient passes to them.
    """

    slopes_N: jax.Array

    @property
    def heads(self) -> int:
        return jnp.shape(self.slopes_N)[0]

    def check(self) -> None:
        """Raises ValueError for slopes that are no vector."""
        check_by_head('slopes_N', self.slopes_N)

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        slopes_N = jax.lax.stop_gradient(precise(self.slopes_N))
        return -slopes_N[:, None] * jnp.abs(distance_D).astype(slopes_N.dtype)
