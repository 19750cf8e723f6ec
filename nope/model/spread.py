"""Positions of randomised position encodings (Ruoss et al., 2023, arXiv 2305.16843).

In training every sequence has a sorted random subset of the positions below a range that is longer
than itself (`nope.data.drawn`), so that no distance inside the range is new in a longer sequence.
The paper draws positions in evaluations too; here they are spread evenly over the range, which no
seed changes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp


def spread(positions_BT: jax.Array, length: int | jax.Array, position_range: int) -> jax.Array:
    """Every floor(range / n)-th position, int32 [B, T]: 0 to n - 1 where n is above half the range.

    positions_BT: int32, 0-based. length: n, of all rows or [B].
    """
    n = jnp.maximum(jnp.asarray(length).astype(jnp.int32), 1)
    stride = jnp.maximum(position_range // n, 1)
    return positions_BT * (stride[:, None] if stride.ndim else stride)
