"""Mamba-2's recurrence by chunks of tokens: matrix products inside, states between.

A head n has a state h of [H, E] numbers, which starts at 0 or is given. Token t decays it and adds
to it, and reads it (arXiv 2405.21060, Section 3.1):

    h_t = exp(dt_t a) h_(t-1) + dt_t x_t b_t^T        y_t = h_t c_t

N heads of H numbers. K groups of heads, head n in group n K // N, have b and c in common, with E
numbers each. With l_t the sum of dt a up to token t, this is

    y_i = sum_(j <= i) exp(l_i - l_j) dt_j (c_i . b_j) x_j  +  exp(l_i) h c_i

over the tokens j of the same chunk, where h is the state before it. The first sum is causal
attention without a softmax, whose weights decay with the distance. Sums of a are taken within a
chunk: over a whole sequence their differences would lose digits.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from nope.runtime.products import exact_einsum
from nope.state_space.convolution import runs

# Of 32 to 256 the fastest backward on two CPU cores, at N = 16, H = 64, E = 128, T = 8,192.
CHUNK = 64


class _Chunk(NamedTuple):
    """Tokens of one chunk. runs_BT: the document of each, numbered. before_B: that of the token in
    front of the chunk."""

    x_BKGTH: jax.Array
    dt_BKGT: jax.Array
    b_BKTE: jax.Array
    c_BKTE: jax.Array
    runs_BT: jax.Array | None
    before_B: jax.Array | None


def chunked_scan(
    x_BTNH: jax.Array,
    dt_BTN: jax.Array,
    a_N: jax.Array,
    b_BTKE: jax.Array,
    c_BTKE: jax.Array,
    *,
    segments_BT: jax.Array | None = None,
    state_BNHE: jax.Array | None = None,
    chunk: int = CHUNK,
) -> tuple[jax.Array, jax.Array]:
    """(y [B, T, N, H] in the dtype of x, the state after the last token, float32).

    dt_BTN: steps, at least 0. a_N: rates, below 0. segments_BT: integer ids of documents; where
    they change the state is empty again. None for one document. state_BNHE: before the first token
    and of its document; ValueError for another shape. chunk: tokens of one.

    Sums in float32 of products in the dtype of x. A chunk is computed again in the backward pass,
    which keeps the states between chunks alone: O(T) memory forward and backward.
    """
    B, T, N, H = x_BTNH.shape
    K, E = b_BTKE.shape[2:]
    if state_BNHE is not None and state_BNHE.shape != (B, N, H, E):
        raise ValueError(f'state_BNHE has shape {state_BNHE.shape}, expected {(B, N, H, E)}')
    G = N // K
    chunk = min(chunk, T)
    C = -(-T // chunk)

    def cut(z_BT: jax.Array, mode: str = 'constant') -> jax.Array:
        """[C, B, chunk, ...]. Steps of 0 beyond the end leave the state as it is."""
        widths = [(0, 0), (0, C * chunk - T)] + [(0, 0)] * (z_BT.ndim - 2)
        return jnp.pad(z_BT, widths, mode=mode).reshape(B, C, chunk, *z_BT.shape[2:]).swapaxes(0, 1)

    runs_CBT = before_CB = None
    if segments_BT is not None:
        runs_CBT = cut(runs(segments_BT), 'edge')
        before_CB = jnp.concatenate([runs_CBT[:1, :, 0], runs_CBT[:-1, :, -1]])
    chunks = _Chunk(
        cut(x_BTNH).reshape(C, B, chunk, K, G, H).transpose(0, 1, 3, 4, 2, 5),
        cut(dt_BTN.astype(jnp.float32)).reshape(C, B, chunk, K, G).transpose(0, 1, 3, 4, 2),
        cut(b_BTKE).swapaxes(2, 3),
        cut(c_BTKE).swapaxes(2, 3),
        runs_CBT,
        before_CB,
    )
    a_KG = a_N.astype(jnp.float32).reshape(K, G)
    if state_BNHE is None:
        state_BNHE = jnp.zeros((B, N, H, E), jnp.float32)
    state_BKGHE = state_BNHE.astype(jnp.float32).reshape(B, K, G, H, E)
    one = jax.checkpoint(lambda state, part: _chunk(a_KG, state, part))
    state_BKGHE, y_CBKGTH = jax.lax.scan(one, state_BKGHE, chunks)
    y_BTNH = y_CBKGTH.transpose(1, 0, 4, 2, 3, 5).reshape(B, C * chunk, N, H)[:, :T]
    return y_BTNH, state_BKGHE.reshape(B, N, H, E)


def _chunk(a_KG: jax.Array, state_BKGHE: jax.Array, part: _Chunk) -> tuple[jax.Array, jax.Array]:
    """(the state after a chunk, y [B, K, G, T, H])."""
    x_BKGTH, dt_BKGT, b_BKTE, c_BKTE, runs_BT, before_B = part
    dtype = x_BKGTH.dtype
    T = x_BKGTH.shape[3]
    sums_BKGT = jnp.cumsum(dt_BKGT * a_KG[..., None], axis=-1)
    near_BTT = jnp.tril(jnp.ones((1, T, T), bool))
    carried_BT = last_BT = None
    if runs_BT is not None and before_B is not None:
        near_BTT &= runs_BT[:, :, None] == runs_BT[:, None]
        carried_BT = runs_BT == before_B[:, None]
        last_BT = runs_BT == runs_BT[:, -1:]
    # Hidden before the exponential, whose gradient would be 0 times infinity after it.
    apart_BKGTT = jnp.where(
        near_BTT[:, None, None], sums_BKGT[..., None] - sums_BKGT[..., None, :], -jnp.inf
    )
    alike_BKTT = exact_einsum('BKTE,BKSE->BKTS', c_BKTE, b_BKTE)
    weights_BKGTT = alike_BKTT[:, :, None] * jnp.exp(apart_BKGTT) * dt_BKGT[..., None, :]
    y_BKGTH = exact_einsum('BKGTS,BKGSH->BKGTH', weights_BKGTT.astype(dtype), x_BKGTH)

    kept_BKGT = jnp.exp(_only(sums_BKGT, carried_BT))
    read_BKGTH = exact_einsum('BKTE,BKGHE->BKGTH', c_BKTE.astype(jnp.float32), state_BKGHE)
    y_BKGTH += kept_BKGT[..., None] * read_BKGTH

    later_BKGT = dt_BKGT * jnp.exp(_only(sums_BKGT[..., -1:] - sums_BKGT, last_BT))
    scaled_BKGTH = (later_BKGT[..., None] * x_BKGTH).astype(dtype)
    added_BKGHE = exact_einsum('BKGTH,BKTE->BKGHE', scaled_BKGTH, b_BKTE)
    state_BKGHE = kept_BKGT[..., -1, None, None] * state_BKGHE + added_BKGHE
    return state_BKGHE, y_BKGTH.astype(dtype)


def _only(logs_BKGT: jax.Array, kept_BT: jax.Array | None) -> jax.Array:
    """The logarithms of some tokens, and -inf for the others."""
    return logs_BKGT if kept_BT is None else jnp.where(kept_BT[:, None, None], logs_BKGT, -jnp.inf)
