"""Short causal convolution of every channel by itself, in front of Mamba-2's scan."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def causal_convolution(
    x_BTC: jax.Array,
    weight_WC: jax.Array,
    *,
    segments_BT: jax.Array | None = None,
    before_BSC: jax.Array | None = None,
) -> jax.Array:
    """y_t = sum_w weight_w x_(t - W + 1 + w), [B, T, C]: float32 sums, in the dtype of x.

    segments_BT: integer ids of documents; where they change, tokens before count as 0. None for one
    document. before_BSC: the S = W - 1 tokens in front, of the first one's document; None for
    zeros. ValueError for another number of them.
    """
    (B, T, C), W = x_BTC.shape, weight_WC.shape[0]
    if before_BSC is None:
        before_BSC = jnp.zeros((B, W - 1, C), x_BTC.dtype)
    if before_BSC.shape != (B, W - 1, C):
        raise ValueError(f'before_BSC has shape {before_BSC.shape}, expected {(B, W - 1, C)}')
    long_BSC = jnp.concatenate([before_BSC, x_BTC], axis=1).astype(jnp.float32)
    runs_BT = None if segments_BT is None else runs(segments_BT)
    y_BTC = jnp.zeros((B, T, C), jnp.float32)
    for distance, weight_C in enumerate(weight_WC[::-1].astype(jnp.float32)):
        earlier_BTC = long_BSC[:, W - 1 - distance : W - 1 - distance + T]
        if runs_BT is not None:
            earlier_run_BT = jnp.pad(runs_BT, [(0, 0), (distance, 0)])[:, :T]
            earlier_BTC = jnp.where((runs_BT == earlier_run_BT)[..., None], earlier_BTC, 0.0)
        y_BTC += earlier_BTC * weight_C
    return y_BTC.astype(x_BTC.dtype)


def runs(segments_BT: jax.Array) -> jax.Array:
    """int32 [B, T]: documents numbered from 0, also where an id comes again."""
    changes_BT = segments_BT[:, 1:] != segments_BT[:, :-1]
    begins_BT = jnp.pad(changes_BT, [(0, 0), (1, 0)])
    return jnp.cumsum(begins_BT, axis=1, dtype=jnp.int32)
