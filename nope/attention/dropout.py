"""Dropout whose masks are functions of keys alone (Srivastava et al., 2014, JMLR 15, 1929-1958)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Dropout(NamedTuple):
    """Dropout of one array.

    rate: the probability that an entry becomes 0, in [0, 1). keys: typed keys, one for each index
    of the array's leading axes: what is drawn for one does not depend on the others.
    """

    rate: float
    keys: jax.Array


def dropped(rate: float, x: jax.Array, keys: jax.Array) -> jax.Array:
    """x with each entry 0 with probability `rate`, else divided by 1 - rate: its mean stays.

    keys: typed keys [...], one for each index of the leading axes of x; a key gives the mask of the
    axes behind them, by a counter for each entry. So the mask of a row is the same in any batch and
    on any mesh.
    """
    shape = x.shape[keys.ndim :]
    kept = jax.vmap(lambda key: jax.random.bernoulli(key, 1 - rate, shape))(keys.ravel())
    return jnp.where(kept.reshape(x.shape), x / (1 - rate), 0)
