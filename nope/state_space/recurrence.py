"""Mamba-2's recurrence, token by token: the definition (arXiv 2405.21060, Section 3.1).

A head n has a state h of [H, E] numbers, which starts at 0 or is given. Token t decays it and adds
to it, and reads it:

    h_t = exp(dt_t a) h_(t-1) + dt_t x_t b_t^T        y_t = h_t c_t

N heads of H numbers. K groups of heads, head n in group n K // N, have b and c in common, with E
numbers each.
"""

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

    dt_BTN: steps, at least 0. a_N: rates, below 0. segments_BT: integer ids of documents; where
    they change the state is empty again. None for one document. state_BNHE: before the first token
    and of its document. ValueError, naming the array, for shapes that do not fit.
    """
    check(x_BTNH, dt_BTN, a_N, b_BTKE, c_BTKE, segments_BT, state_BNHE)
    B, T, N, H = x_BTNH.shape
    K, E = b_BTKE.shape[2:]
    first_BNHE = jnp.zeros((B, N, H, E)) if state_BNHE is None else state_BNHE
    fresh_BT = jnp.zeros((B, T), bool) if segments_BT is None else _begins(segments_BT)

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


def check(
    x_BTNH: jax.Array,
    dt_BTN: jax.Array,
    a_N: jax.Array,
    b_BTKE: jax.Array,
    c_BTKE: jax.Array,
    segments_BT: jax.Array | None,
    state_BNHE: jax.Array | None,
) -> None:
    """ValueError where the shapes do not fit together or there is no token."""
    if x_BTNH.ndim != 4 or x_BTNH.shape[1] < 1:
        raise ValueError(f'x_BTNH has shape {x_BTNH.shape}, expected [B, T, N, H] with T >= 1')
    B, T, N, H = x_BTNH.shape
    if b_BTKE.ndim != 4 or b_BTKE.shape[:2] != (B, T) or N % b_BTKE.shape[2]:
        raise ValueError(
            f'b_BTKE has shape {b_BTKE.shape}, expected {(B, T)} and [K, E] with K a divisor of '
            f'the {N} heads'
        )
    shapes = (
        ('dt_BTN', dt_BTN, (B, T, N)),
        ('a_N', a_N, (N,)),
        ('c_BTKE', c_BTKE, b_BTKE.shape),
        ('segments_BT', segments_BT, (B, T)),
        ('state_BNHE', state_BNHE, (B, N, H, b_BTKE.shape[3])),
    )
    for name, array, shape in shapes:
        if array is not None and array.shape != shape:
            raise ValueError(f'{name} has shape {array.shape}, expected {shape}')


def runs(segments_BT: jax.Array) -> jax.Array:
    """int32 [B, T]: documents numbered from 0, also where an id comes again."""
    return jnp.cumsum(_begins(segments_BT), axis=1, dtype=jnp.int32)


def _begins(segments_BT: jax.Array) -> jax.Array:
    """bool [B, T]: where the id differs from the one before; not at the first."""
    changes_BT = segments_BT[:, 1:] != segments_BT[:, :-1]
    return jnp.pad(changes_BT, [(0, 0), (1, 0)])
