"""Dropout whose masks are functions of keys alone (Srivastava et al., 2014, JMLR 15, 1929-1958)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry2x32_p


class Dropout(NamedTuple):
    """Dropout of one array.

    rate: the probability that an entry becomes 0, in [0, 1). keys: typed keys, one for each index
    of the array's leading axes. Each draws by itself.
    """

    rate: float
    keys: jax.Array


def dropped(rate: float, x: jax.Array, keys: jax.Array) -> jax.Array:
    """x with each entry 0 with probability `rate`, else divided by 1 - rate: its mean stays.

    keys: typed threefry keys [...], one for each index of the leading axes of x; a key gives the
    mask of the axes behind them, by a counter for four entries. So the mask of a row is the same in
    any batch and on any mesh. The rate is rounded to a multiple of 2^-16, not to 0 nor to 1.
    """
    least = min(max(round(rate * 2**16), 1), 2**16 - 1) if rate else 0
    shape = x.shape[keys.ndim :]
    first, *rest = shape or (1,)
    quarter = (-(-first // 4), *rest)

    def kept(key: jax.Array) -> jax.Array:
        """Whether uniform numbers of 16 bits are at least `least`: of each counter four neighbours
        along the first axis. So an axis that is split is drawn where it lies."""
        counters = jnp.zeros(quarter, jnp.uint32)
        for axis, size in enumerate(quarter):
            counters *= np.uint32(size)
            counters += jax.lax.broadcasted_iota(jnp.uint32, quarter, axis)
        one, two = jax.random.key_data(key)
        high, low = threefry2x32_p.bind(one, two, jnp.zeros_like(counters), counters)
        half = np.uint32(2**16 - 1)
        numbers = jnp.stack([high & half, high >> 16, low & half, low >> 16], axis=1)
        return numbers.reshape(-1, *rest)[:first].reshape(shape) >= np.uint32(least)

    kept_X = jax.vmap(kept)(keys.ravel()).reshape(x.shape)
    raised_X = (x.astype(jnp.float32) / (1 - least / 2**16)).astype(x.dtype)
    return jnp.where(kept_X, raised_X, 0)
