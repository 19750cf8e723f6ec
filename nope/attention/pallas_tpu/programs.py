"""Grid steps of the TPU kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from nope.attention.flash import FLOOR, HIDDEN
from nope.attention.pallas_tpu.arrays import Shape
from nope.attention.pallas_tpu.schedule import CUT, FIRST, IDLE, LAST
from nope.attention.structure import in_sight

_NN = (((1,), (0,)), ((), ()))  # x @ y
_NT = (((1,), (1,)), ((), ()))  # x @ y.T
_TN = (((0,), (0,)), ((), ()))  # x.T @ y


class Refs(NamedTuple):
    """One block of each of `Arrays`; of a line by distance, the two blocks that a pair of blocks
    needs."""

    q: Any
    k: Any
    v: Any
    line_low: Any
    line_high: Any
    factors_low: Any
    factors_high: Any
    key_bias: Any
    q_ids: Any
    kv_ids: Any
    at: Any
    d_out: Any
    lse: Any
    c: Any
    d_entropy: Any


class Step(NamedTuple):
    """Position of a kernel in its grid: step p on blocks i and j, head g of a group of G."""

    p: jax.Array
    i: jax.Array
    j: jax.Array
    flags: jax.Array
    g: jax.Array | int
    G: int

    def first(self) -> jax.Array:
        return (self.flags & FIRST != 0) & (self.g == 0)

    def last(self) -> jax.Array:
        return (self.flags & LAST != 0) & (self.g == self.G - 1)

    def work(self, function: Callable[..., None]) -> None:
        """function(cut=...) unless the step is idle."""
        at_work, cut = self.flags & IDLE == 0, self.flags & CUT != 0
        pl.when(at_work & cut)(functools.partial(function, cut=True))
        pl.when(at_work & ~cut)(functools.partial(function, cut=False))


def _dot(x: jax.Array, y: jax.Array, axes: Any) -> jax.Array:
    """float32 sums of exact products."""
    exact = jax.lax.Precision.HIGHEST if x.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    return jax.lax.dot_general(x, y, axes, precision=exact, preferred_element_type=jnp.float32)


def _logits(
    shape: Shape, step: Step, refs: Refs, factors_SR: jax.Array | None, *, cut: bool
) -> jax.Array:
    """float32 [S, R] of one pair of blocks, hidden ones `HIDDEN`."""
    s_SR = _products(refs)
    if factors_SR is not None:
        s_SR *= factors_SR
    if refs.line_low is not None:
        s_SR += _by_distance(refs.line_low, refs.line_high)
    if refs.key_bias is not None:
        s_SR += _column(refs.key_bias[...])
    seen_SR = _seen(shape, step, refs, cut=cut)
    return s_SR if seen_SR is None else jnp.where(seen_SR, s_SR, HIDDEN)


def _products(refs: Refs) -> jax.Array:
    """q . k of one pair of blocks, float32 [S, R]."""
    return _dot(refs.k[...], refs.q[...], _NT)


def _factors(refs: Refs) -> jax.Array | None:
    """The factors of one pair of blocks, float32 [S, R]; None where they are 1."""
    if refs.factors_low is None:
        return None
    return _by_distance(refs.factors_low, refs.factors_high)


def _by_distance(low: Any, high: Any) -> jax.Array:
    """float32 [S, R]: a line's numbers for one pair of blocks."""
    return _toeplitz(jnp.concatenate([low[...], high[...]], axis=1))


def _seen(shape: Shape, step: Step, refs: Refs, *, cut: bool) -> jax.Array | None:
    plan, rules = shape.plan, []
    if cut:
        at_1R = refs.at[...]
        at_S1 = step.j * plan.k_block + jax.lax.broadcasted_iota(jnp.int32, (plan.k_block, 1), 0)
        in_sight_SR = in_sight(at_1R, at_S1, causal=plan.causal, window=plan.window)
        if in_sight_SR is not None:
            rules.append(in_sight_SR)
        if not plan.padding_is_hidden and plan.keys % plan.k_block:
            rules.append(at_S1 < plan.keys)
    if refs.q_ids is not None:
        rules.append(_column(refs.kv_ids[...]) == refs.q_ids[...])
    return functools.reduce(jnp.logical_and, rules) if rules else None


def _column(x_1S: jax.Array) -> jax.Array:
    """[1, S] -> [S, 1], by way of a transposition, for which registers must be full."""
    return jnp.broadcast_to(x_1S, (8, x_1S.shape[1])).T[:, :1]


def _sums_by_key(x_SR: jax.Array) -> jax.Array:
    """[S, R] -> [1, S], in whole registers that are added before they are transposed."""
    rows = x_SR.shape[1]
    lanes = min(rows, 128)
    parts = [x_SR[:, at : at + lanes] for at in range(0, rows, lanes)]
    return jnp.sum(functools.reduce(jnp.add, parts).T, axis=0, keepdims=True)


def _toeplitz(line_1D: jax.Array) -> jax.Array:
    """[1, 2 b] -> [b, b] with entry (s, t) = line[t - s + b - 1]."""
    size = line_1D.shape[1]
    block = size // 2
    wide = jnp.broadcast_to(line_1D, (block, size))
    return pltpu.roll(wide, block + 1, 1, stride=1, stride_axis=0)[:, :block]


def _diagonal_sums(x_SR: jax.Array) -> jax.Array:
    """The transpose of `_toeplitz`: [b, b] -> [1, 2 b], in halves that are moved and added."""
    block = x_SR.shape[0]
    moved = jnp.concatenate([x_SR, jnp.zeros_like(x_SR)], axis=1)
    rows = block
    while rows > 1:
        rows //= 2
        moved = moved[:rows] + pltpu.roll(moved[rows:], 2 * block - rows, 1)
    return pltpu.roll(moved, block - 1, 1)


def forward_kernel(shape: Shape, step: Step, refs: Refs, outputs, scratch) -> None:
    acc_HR, max_1R, norm_1R, *entropy_1R = scratch

    @pl.when(step.first())
    def _():
        acc_HR[...] = jnp.zeros_like(acc_HR)
        max_1R[...] = jnp.full_like(max_1R, FLOOR)
        for ref in (norm_1R, *entropy_1R):
            ref[...] = jnp.zeros_like(ref)

    @step.work
    def _(*, cut):
        s_SR = _logits(shape, step, refs, _factors(refs), cut=cut)
        old_1R = max_1R[...]
        new_1R = jnp.maximum(old_1R, jnp.max(s_SR, axis=0, keepdims=True))
        z_SR = s_SR - new_1R
        p_SR = jnp.exp(z_SR)
        moved_1R = old_1R - new_1R
        decay_1R = jnp.exp(moved_1R)
        for ref in entropy_1R:
            # sum_j e^(s_j - m) (s_j - m) moves with both of its factors.
            carried_1R = decay_1R * (ref[...] + moved_1R * norm_1R[...])
            ref[...] = carried_1R + jnp.sum(p_SR * z_SR, axis=0, keepdims=True)
        norm_1R[...] = decay_1R * norm_1R[...] + jnp.sum(p_SR, axis=0, keepdims=True)
        v_SH = refs.v[...]
        acc_HR[...] = decay_1R * acc_HR[...] + _dot(v_SH, p_SR.astype(v_SH.dtype), _TN)
        max_1R[...] = new_1R

    @pl.when(step.last())
    def _():
        out, lse, *entropy = outputs
        seen_1R = norm_1R[...] > 0
        safe_1R = jnp.where(seen_1R, norm_1R[...], 1.0)
        log_1R = jnp.log(safe_1R)
        out[...] = (acc_HR[...] / safe_1R).T.astype(out.dtype)
        lse[...] = jnp.where(seen_1R, max_1R[...] + log_1R, -jnp.inf)
        for ref, sum_1R in zip(entropy, entropy_1R, strict=True):
            ref[...] = log_1R - sum_1R[...] / safe_1R


class _Pair(NamedTuple):
    """Of one pair of blocks, float32 [S, R], see `flash`: the weights P, the gradient of the logits
    ds = P (dP - c - dH z), and that of the products, which factors multiply."""

    p_SR: jax.Array
    d_s_SR: jax.Array
    d_products_SR: jax.Array


def _pair(shape: Shape, step: Step, refs: Refs, *, cut: bool) -> _Pair:
    factors_SR = _factors(refs)
    z_SR = _logits(shape, step, refs, factors_SR, cut=cut) - refs.lse[...]
    p_SR = jnp.exp(z_SR)
    d_p_SR = _dot(refs.v[...], refs.d_out[...], _NT) - refs.c[...]
    if refs.d_entropy is not None:
        d_p_SR -= refs.d_entropy[...] * z_SR
    d_s_SR = p_SR * d_p_SR
    return _Pair(p_SR, d_s_SR, d_s_SR if factors_SR is None else d_s_SR * factors_SR)


def query_gradient_kernel(shape: Shape, step: Step, refs: Refs, outputs, scratch) -> None:
    """outputs: the gradient of q; where asked for that of the line, and with it, where there are
    factors, theirs."""
    (d_q, *d_lines), (acc_HR,) = outputs, scratch

    @pl.when(step.first())
    def _():
        acc_HR[...] = jnp.zeros_like(acc_HR)

    for line in d_lines:

        @pl.when(step.p == 0)
        def _(line=line):
            line[...] = jnp.zeros_like(line)

    @step.work
    def _(*, cut):
        _, d_s_SR, d_products_SR = _pair(shape, step, refs, cut=cut)
        k_SH = refs.k[...]
        acc_HR[...] += _dot(k_SH, d_products_SR.astype(k_SH.dtype), _TN)
        for line, of_factors in zip(d_lines, (False, True), strict=False):
            d_block_SR = d_s_SR * _products(refs) if of_factors else d_s_SR
            block = shape.row_block
            first = pl.multiple_of((step.i + shape.plan.k_blocks - 1 - step.j) * block, block)
            line[:, pl.ds(first, 2 * block)] += _diagonal_sums(d_block_SR)

    @pl.when(step.last())
    def _():
        d_q[...] = acc_HR[...].T.astype(d_q.dtype)


def key_gradient_kernel(shape: Shape, step: Step, refs: Refs, outputs, scratch) -> None:
    @pl.when(step.first())
    def _():
        for ref in scratch:
            ref[...] = jnp.zeros_like(ref)

    d_k_SH, d_v_SH, *d_bias_GS = scratch

    @step.work
    def _(*, cut):
        p_SR, d_s_SR, d_products_SR = _pair(shape, step, refs, cut=cut)
        q_RH, d_out_RH = refs.q[...], refs.d_out[...]
        d_k_SH[...] += _dot(d_products_SR.astype(q_RH.dtype), q_RH, _NN)
        d_v_SH[...] += _dot(p_SR.astype(d_out_RH.dtype), d_out_RH, _NN)
        for ref in d_bias_GS:
            ref[pl.ds(step.g, 1), :] += _sums_by_key(d_s_SR)

    @pl.when(step.last())
    def _():
        for out, sums in zip(outputs, scratch, strict=True):
            out[...] = sums[...].astype(out.dtype)
