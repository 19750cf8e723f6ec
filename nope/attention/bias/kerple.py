"""Bias that falls with the logarithm of the distance (KERPLE)."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp

from nope.attention.bias.base import Bias, check_by_head, precise


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=('heights_N', 'rates_N'), meta_fields=()
)
@dataclasses.dataclass(frozen=True)
class KerpleBias(Bias):
    """-height_n ln(1 + rate_n |distance|) (Chi et al., 2022, arXiv:2205.09921: the logarithmic
    kernel, with r1 the height and r2 the rate).

    heights_N, rates_N: float, [N], both 0 or more.
    """

    heights_N: jax.Array
    rates_N: jax.Array

    @property
    def heads(self) -> int:
        return jnp.shape(self.heights_N)[0]

    def check(self) -> None:
        """Raises ValueError for parameters that are no vectors of one length."""
        check_by_head('heights_N', self.heights_N)
        if jnp.shape(self.rates_N) != jnp.shape(self.heights_N):
            raise ValueError(
                f'bias.rates_N has shape {jnp.shape(self.rates_N)}, bias.heights_N has '
                f'{jnp.shape(self.heights_N)}'
            )

    def by_distance(self, distance_D: jax.Array) -> jax.Array:
        """The bias at each of the distances, float32 [N, D] (float64 for such parameters)."""
        heights_N1, rates_N1 = (precise(x)[:, None] for x in (self.heights_N, self.rates_N))
        return -heights_N1 * jnp.log1p(rates_N1 * jnp.abs(distance_D).astype(rates_N1.dtype))
