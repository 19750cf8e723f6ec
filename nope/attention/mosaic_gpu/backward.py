"""Gradients of a block's logits, as both backward kernels of `mosaic_gpu` compute them.

With z = s - lse, P = e^z and dP = dout . v, ds = P (dP - c - dH z); see `flash`. Then
dq = ds k, dk = ds^T q and dv = P^T dout (`query_gradient`, `key_gradients`). The sum of dP begins
at -c, and so ds needs no subtraction.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from nope.attention.flash import BEYOND, Rows
from nope.attention.mosaic_gpu.arrays import pad
from nope.attention.mosaic_gpu.parts import LN2, LOG2E, HopperRefs, HopperShape, product


def stack_rows(rows: Rows, queries: int, *, biased: bool) -> jax.Array:
    """float32 [B, N, R, queries]: lse / ln 2, -c and dH ln 2 for a pull on the entropy. Queries
    beyond the end have 0, and an lse under which no `biased` key has weight."""
    stacked = [rows.lse_BNT * LOG2E, -rows.c_BNT]
    if rows.d_entropy_BNT is not None:
        stacked.append(rows.d_entropy_BNT * LN2)
    rows_BNRT = pad(jnp.stack(stacked, axis=2), {3: queries})
    T = rows.lse_BNT.shape[2]
    return rows_BNRT.at[:, :, 0, T:].set(BEYOND) if biased and queries > T else rows_BNRT


def two_products(shape, q, k, d_out, v, rows, score, use, *, apart):
    """Logits and dP of a pair of blocks, as use(P, ds). ds is a function of n: it waits for dP, but
    not for the last n products begun since.

    rows(): numbers of `stack_rows`, spread over a block, read while the first product runs.
    score(logits): these with what the call adds to them, and the mask or None. apart: dP begins
    after the logits, with the entropy's part in its sum. They and the numbers need no registers by
    then."""

    def second(logits):
        scored = score(logits(0)) if apart else None
        lse, start, *d_entropy = rows()

        def shifted_logits():
            # While the tensor cores work on dP, unless apart.
            scores, seen = score(logits(1)) if scored is None else scored
            return scores * LOG2E - lse, seen  # z / ln 2

        def weights_of(shifted, seen):
            weights = jnp.exp2(shifted)
            return weights if seen is None else jnp.where(seen, weights, 0.0)

        def meanwhile(pulls):
            shifted, seen = shifted_logits()
            weights = weights_of(shifted, seen)

            def d_logits(n):
                pull = pulls(n)
                for x in d_entropy:
                    pull -= x * shifted
                return weights * pull

            return use(weights, d_logits)

        if not apart:
            return product(shape, d_out, v, meanwhile, onto=start)
        shifted, seen = shifted_logits()
        for x in d_entropy:
            start -= x * shifted

        def after(pulls):
            weights = weights_of(shifted, seen)
            return use(weights, lambda n: weights * pulls(n))

        return product(shape, d_out, v, after, onto=start)

    return product(shape, q, k, second)


def apart_for_registers(shape: HopperShape, refs: HopperRefs) -> bool:
    """Whether a kernel begins its products `apart`: a bias at a wide head dim."""
    return shape.head_dim > 64 and refs.biased
