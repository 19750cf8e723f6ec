"""Bias of the products of sinusoidal position vectors (Sandwich)."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention.bias.base import Bias, check_by_head, precise


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=('scales_N',), meta_fields=('dims', 'base')
)
@dataclasses.dataclass(frozen=True)
class SandwichBias(Bias):
    """scale_n sum_i (cos(distance / base^(2i / dims)) - 1), i = 0 .. dims / 2 - 1. It is the
    product of two sinusoidal position vectors (Chi et al., 2023, arXiv:2212.10356). The product of
    one with itself, which all logits of a query share, is subtracted.

    scales_N: float, [N]. dims: even, 2 or more. base: above 0.
    """

    scales_N: jax.Array
    dims: int = 128
    base: float = 10_000.0

    @property
    def heads(self) -> int:
        return jnp.shape(self.scales_N)[0]

    def check(self) -> None:
        """Raises ValueError for scales that are no vector, an odd number of dims, and a base that
        is not above 0."""
        check_by_head('scales_N', self.scales_N)
        if self.dims < 2 or self.dims % 2:
            raise ValueError(f'bias.dims is {self.dims}; accepted: even numbers, at least 2')
        if not self.base > 0:
            raise ValueError(f'bias.base is {self.base}; accepted: above 0')

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        scales_N = precise(self.scales_N)
        frequencies_P = self.base ** (-np.arange(0, self.dims, 2) / self.dims)
        angles_DP = distance_D.astype(scales_N.dtype)[:, None] * frequencies_P.astype(
            scales_N.dtype
        )
        # cos x - 1 without the digits that the difference loses for near keys.
        falls_D = jnp.sum(-2 * jnp.sin(angles_DP / 2) ** 2, axis=1)
        return scales_N[:, None] * falls_D
