"""Queries multiplied by p / sqrt(H), after the position encoding and before attention."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def scale_queries(
    q_BTNH: jax.Array, multipliers_N: jax.Array, softmax_scale: float | None = None
) -> jax.Array:
    """q * p_h / sqrt(H), in float32, cast back to q's dtype (kernels then run with scale 1).

    multipliers_N: p_h, [N], [B, N] where rows differ, or [B, T, N] where positions do ([1, T, N]
    for all rows). softmax_scale: in place of 1 / sqrt(H), unless it is None.
    """
    if softmax_scale is not None:
        factor_N = multipliers_N * softmax_scale
    else:
        factor_N = multipliers_N / jnp.sqrt(jnp.float32(q_BTNH.shape[-1]))
    scaled_BTNH = q_BTNH.astype(jnp.float32)
    if factor_N.ndim == 3:
        scaled_BTNH *= factor_N[..., None]
    else:
        scaled_BTNH *= factor_N[..., None, :, None]
    return scaled_BTNH.astype(q_BTNH.dtype)
