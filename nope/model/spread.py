"""Positions of randomised position encodings (Ruoss et al., 2023, arXiv 2305.16843).

In training every sequence has a sorted random subset of the positions below a range that is longer
than itself (`nope.data.pipeline`): no distance inside the range is new in a longer sequence.
The paper draws positions in evaluations too; here they are spread evenly over the range, which no
seed changes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def spread(positions_BT: jax.Array, length: int | jax.Array, position_range: int) -> jax.Array:
    """floor(i range / n) of position i, int32 [B, T]; i itself in sequences longer than the range.

    positions_BT: int32, 0-based; from n on, in padding after a row, as n - 1. length: n, of all
    rows or [B]. Exact for n up to 2**26.
    """
    n = jnp.maximum(jnp.asarray(length).astype(jnp.int32), 1)
    n = n[:, None] if n.ndim else n
    positions_BT = jnp.minimum(positions_BT, n - 1)
    whole, rest = position_range // n, position_range % n
    # floor(i rest / n), for which i rest may be above int32. float32 is off by a few at most; the
    # remainder says by how many, exactly, since wrapping around cancels in a difference.
    share = rest.astype(jnp.float32) / n.astype(jnp.float32)
    between = (positions_BT.astype(jnp.float32) * share).astype(jnp.int32)
    between += (positions_BT * rest - between * n) // n
    return jnp.where(n > position_range, positions_BT, positions_BT * whole + between)
