"""Short causal convolution of every channel by itself, in front of Mamba-2's scan."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.state_space.recurrence import begins_run


def causal_convolution(
    x_BTC: jax.Array,
    weight_WC: jax.Array,
    *,
    segments_BT: jax.Array | None = None,
    before_BWC: jax.Array | None = None,
) -> jax.Array:
    """y_t = sum_w weight_w x_(t - W + 1 + w), [B, T, C] in the dtype of x.

    segments_BT: integer ids of documents; where they change, tokens before count as 0. None for one
    document. before_BWC: the W - 1 tokens in front, of the first one's document; None for zeros.
    """
    W, T = weight_WC.shape[0], x_BTC.shape[1]
    if before_BWC is None:
        before_BWC = jnp.zeros((x_BTC.shape[0], W - 1, x_BTC.shape[2]), x_BTC.dtype)
    long_BSC = jnp.concatenate([before_BWC.astype(x_BTC.dtype), x_BTC], axis=1)
    runs_BT = None
    if segments_BT is not None:
        runs_BT = jnp.cumsum(begins_run(segments_BT), axis=1, dtype=jnp.int32)
    y_BTC = x_BTC * weight_WC[-1]
    for distance in range(1, W):
        earlier_BTC = long_BSC[:, W - 1 - distance : W - 1 - distance + T]
        if runs_BT is not None:
            shifted_BT = jnp.pad(runs_BT, [(0, 0), (distance, 0)])[:, :T]
            earlier_BTC = jnp.where((runs_BT == shifted_BT)[..., None], earlier_BTC, 0)
        y_BTC += earlier_BTC * weight_WC[-1 - distance]
    return y_BTC
