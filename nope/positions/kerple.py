"""Kernelized relative position encoding, its logarithmic variant (KERPLE)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.attention import KerpleBias
from nope.positions.base import Position, Table


@dataclasses.dataclass(frozen=True)
class Kerple(Position):
    """Term -r1 ln(1 + r2 |i - j|) of the logits. Each head learns r1, r2 > 0, one pair for all
    layers (Chi et al., 2022, arXiv 2205.09921, the logarithmic kernel).

    The authors' code draws r1 from U(0, 2) and r2 from U(0, 1), and sets what is below 0.01 to
    0.01 before every use. Here they are drawn alike, and learned as logarithms, which keeps them
    above 0; weight decay draws them towards 1.
    """

    def table(self, width: int, heads: int) -> Table:
        """ln r1 and ln r2, [2, heads]."""
        return Table((2, heads), ('buckets', 'heads'), draw=_draw)

    def bias(self, heads: int, table: jax.Array | None) -> KerpleBias:
        assert table is not None
        heights_N, rates_N = jnp.exp(table.astype(jnp.float32))
        return KerpleBias(heights_N, rates_N)

    def describe(self) -> str:
        return 'KERPLE'


def _draw(
    key: jax.Array, shape: tuple[int, ...], dtype: jax.typing.DTypeLike = jnp.float32
) -> jax.Array:
    largest_21 = jnp.asarray([[2.0], [1.0]])
    drawn_2N = largest_21 * jax.random.uniform(key, shape)
    return jnp.log(jnp.maximum(drawn_2N, 0.01)).astype(dtype)
