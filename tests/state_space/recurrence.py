"""Mamba-2's recurrence, token by token: the definition, as `nope.state_space.chunked` states it."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def recurrent_scan(
    x_BTNH: jax.Array,
    dt_BTN: jax.Array,
    a_N: jax.Array,
    b_BTKE: jax.Array,
    c_BTKE: jax.Array,
    *,
    segments_BT: jax.Array | None = None,
    state_BNHE: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """(y [B, T, N, H] in the dtype of x, the state after the last token, float32).

    Arguments as `chunked_scan` takes them.
    """
    B, T, N, H = x_BTNH.shape
    K, E = b_BTKE.shape[2:]
    first_BNHE = jnp.zeros((B, N, H, E)) if state_BNHE is None else state_BNHE
    fresh_BT = jnp.zeros((B, T), bool)
    if segments_BT is not None:
        fresh_BT = fresh_BT.at[:, 1:].set(segments_BT[:, 1:] != segments_BT[:, :-1])

    def step(h_BNHE, token):
        x_BNH, dt_BN, b_BKE, c_BKE, fresh_B = token
        b_BNE, c_BNE = (jnp.repeat(z, N // K, axis=1) for z in (b_BKE, c_BKE))
        h_BNHE = jnp.where(fresh_B[:, None, None, None], 0.0, h_BNHE)
        added_BNHE = (dt_BN[..., None] * x_BNH)[..., None] * b_BNE[:, :, None]
        h_BNHE = jnp.exp(dt_BN * a_N)[..., None, None] * h_BNHE + added_BNHE
        return h_BNHE, jnp.einsum('BNHE,BNE->BNH', h_BNHE, c_BNE, precision='highest')

    floats = (z.astype(jnp.float32) for z in (x_BTNH, dt_BTN, b_BTKE, c_BTKE))
    tokens = tuple(z.swapaxes(0, 1) for z in (*floats, fresh_BT))
    last_BNHE, y_TBNH = jax.lax.scan(step, first_BNHE.astype(jnp.float32), tokens)
    return y_TBNH.swapaxes(0, 1).astype(x_BTNH.dtype), last_BNHE
