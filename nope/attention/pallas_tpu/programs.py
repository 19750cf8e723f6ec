"""Grid steps of the TPU kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.flash import FLOOR, HIDDEN, logit_gradient
from nope.attention.pallas_tpu.arrays import Shape
from nope.attention.pallas_tpu.schedule import CUT, FIRST, IDLE, LAST
from nope.attention.structure import in_sight
from nope.runtime.libraries import pl, pltpu

_PRODUCT_KEYS = 256  # of the weights whose products with v stand together
_WEIGHT_KEYS = 64  # whose weights are computed together
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


class GridStep(NamedTuple):
    """Position of a kernel in its grid: step p of the schedule, on blocks i and j of head g of a
    group of G. by_key: the heads of a group are the innermost steps, not the outer ones."""

    p: jax.Array
    i: jax.Array
    j: jax.Array
    flags: jax.Array
    g: jax.Array
    G: int
    by_key: bool

    def first(self) -> jax.Array:
        """Whether it is the first step of an output block."""
        first = self.flags & FIRST != 0
        return first & (self.g == 0) if self.by_key else first

    def last(self) -> jax.Array:
        last = self.flags & LAST != 0
        return last & (self.g == self.G - 1) if self.by_key else last

    def work(self, function: Callable[..., None]) -> None:
        """function(cut=...) unless the step is idle."""
        at_work, cut = self.flags & IDLE == 0, self.flags & CUT != 0
        pl.when(at_work & cut)(functools.partial(function, cut=True))
        pl.when(at_work & ~cut)(functools.partial(function, cut=False))


def _dot(x: jax.Array, y: jax.Array, axes: Any) -> jax.Array:
    """float32 sums of exact products."""
    exact = jax.lax.Precision.HIGHEST if x.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    return jax.lax.dot_general(x, y, axes, precision=exact, preferred_element_type=jnp.float32)


def _parts(shape: Shape) -> list[slice]:
    """The rows of a block, in parts that are computed one after the other. They do not depend on
    each other, so that the products of one go along with the exponentials of another."""
    return [slice(at, at + shape.part) for at in range(0, shape.row_block, shape.part)]


def _logits(
    shape: Shape,
    step: GridStep,
    refs: Refs,
    part: slice,
    factors_SR: jax.Array | None,
    *,
    cut: bool,
) -> jax.Array:
    """float32 [S, R] of one block of keys and a part of a block of queries, hidden ones
    `HIDDEN`."""
    s_SR = _dot(refs.k[...], refs.q[part, :], _NT)
    if factors_SR is not None:
        s_SR *= factors_SR
    if refs.line_low is not None:
        s_SR += _by_distance(refs.line_low, refs.line_high, part)
    if refs.key_bias is not None:
        s_SR += _column(refs.key_bias[...])
    plan, rules = shape.plan, []
    if cut:
        at_1R = refs.at[:, part]
        at_S1 = step.j * plan.k_block + jax.lax.broadcasted_iota(jnp.int32, (plan.k_block, 1), 0)
        in_sight_SR = in_sight(at_1R, at_S1, causal=plan.causal, window=plan.window)
        if in_sight_SR is not None:
            rules.append(in_sight_SR)
        if not plan.padding_is_hidden and plan.keys % plan.k_block:
            rules.append(at_S1 < plan.keys)
    if refs.q_ids is not None:
        rules.append(_column(refs.kv_ids[...]) == refs.q_ids[:, part])
    return jnp.where(functools.reduce(jnp.logical_and, rules), s_SR, HIDDEN) if rules else s_SR


def _factors(refs: Refs, part: slice) -> jax.Array | None:
    """float32 [S, R]; None where they are 1."""
    if refs.factors_low is None:
        return None
    return _by_distance(refs.factors_low, refs.factors_high, part)


def _by_distance(low: Any, high: Any, part: slice) -> jax.Array:
    """float32 [S, R] for a block of keys and a part of as many queries: entry (s, t) is the line's
    number t - s + S - 1."""
    line_1D = jnp.concatenate([low[...], high[...]], axis=1)
    block = line_1D.shape[1] // 2
    line_1D = line_1D[:, part.start : part.stop + block]
    size = line_1D.shape[1]
    wide = jnp.broadcast_to(line_1D, (block, size))
    return pltpu.roll(wide, size - block + 1, 1, stride=1, stride_axis=0)[:, : size - block]


def _column(x_1S: jax.Array) -> jax.Array:
    """[1, S] -> [S, 1], by way of a transposition, for which registers must be full."""
    return jnp.broadcast_to(x_1S, (8, x_1S.shape[1])).T[:, :1]


def _sums_by_key(x_SR: jax.Array) -> jax.Array:
    """[S, R] -> [1, S], in whole registers that are added before they are transposed."""
    rows = x_SR.shape[1]
    lanes = min(rows, 128)
    parts = [x_SR[:, at : at + lanes] for at in range(0, rows, lanes)]
    return jnp.sum(functools.reduce(jnp.add, parts).T, axis=0, keepdims=True)


def _diagonal_sums(x_SR: jax.Array) -> jax.Array:
    """The transpose of `_by_distance`: [b, r] -> [1, b + r], in halves that are moved and added."""
    block, width = x_SR.shape
    moved = jnp.concatenate([x_SR, jnp.zeros((block, block), x_SR.dtype)], axis=1)
    rows = block
    while rows > 1:
        rows //= 2
        moved = moved[:rows] + pltpu.roll(moved[rows:], block + width - rows, 1)
    return pltpu.roll(moved, block - 1, 1)


def forward_kernel(shape: Shape, step: GridStep, refs: Refs, outputs, scratch) -> None:
    acc_HR, max_1R, norm_1R, *entropy_1R = scratch

    @pl.when(step.first())
    def _():
        acc_HR[...] = jnp.zeros_like(acc_HR)
        max_1R[...] = jnp.full_like(max_1R, FLOOR)
        for ref in (norm_1R, *entropy_1R):
            ref[...] = jnp.zeros_like(ref)

    @step.work
    def _(*, cut):
        parts = _parts(shape)
        logits = functools.partial(_logits, shape, step, refs, cut=cut)
        ahead = [logits(parts[0], _factors(refs, parts[0]))]
        for n, part in enumerate(parts):
            # The next part's products stand before this one's exponentials, and go along with them.
            ahead += [logits(x, _factors(refs, x)) for x in parts[n + 1 : n + 2]]
            _attend(refs, scratch, part, ahead[n])

    @pl.when(step.last())
    def _():
        out, lse, *more = outputs
        entropy, max_logit = more[: len(entropy_1R)], more[len(entropy_1R) :]
        seen_1R = norm_1R[...] > 0
        safe_1R = jnp.where(seen_1R, norm_1R[...], 1.0)
        log_1R = jnp.log(safe_1R)
        out[...] = (acc_HR[...] / safe_1R).T.astype(out.dtype)
        lse[...] = jnp.where(seen_1R, max_1R[...] + log_1R, -jnp.inf)
        for ref, sum_1R in zip(entropy, entropy_1R, strict=True):
            ref[...] = log_1R - sum_1R[...] / safe_1R
        for ref in max_logit:
            ref[...] = jnp.where(seen_1R, max_1R[...], -jnp.inf)


def _attend(refs: Refs, scratch, part: slice, s_SR: jax.Array) -> None:
    """Moves the running sums of a part of the queries on by one block of keys. It takes a few keys
    at a time: their weights go from one register to the next."""
    acc_HR, max_1R, norm_1R, *entropy_1R = scratch
    old_1R = max_1R[:, part]
    new_1R = jnp.maximum(old_1R, jnp.max(s_SR, axis=0, keepdims=True))
    moved_1R = old_1R - new_1R
    decay_1R = jnp.exp(moved_1R)
    # sum_j e^(s_j - m) (s_j - m) moves with both of its factors.
    carried = [decay_1R * norm_1R[:, part]]
    carried += [decay_1R * (ref[:, part] + moved_1R * norm_1R[:, part]) for ref in entropy_1R]
    sums = [jnp.zeros((8, s_SR.shape[1]), jnp.float32)] * len(carried)
    sum_HR = decay_1R * acc_HR[:, part]
    for of_product in _pieces(0, s_SR.shape[0], _PRODUCT_KEYS):
        weights = []
        for keys in _pieces(of_product.start, of_product.stop, _WEIGHT_KEYS):
            z_SR = s_SR[keys] - new_1R
            p_SR = jnp.exp(z_SR)
            terms = p_SR, p_SR * z_SR
            sums = [  # by row modulo 8: additions of whole registers
                x_8R + jnp.sum(t.reshape(-1, 8, t.shape[1]), axis=0)
                for x_8R, t in zip(sums, terms, strict=False)
            ]
            weights.append(p_SR.astype(refs.v.dtype))
        sum_HR += _dot(refs.v[of_product, :], jnp.concatenate(weights), _TN)
    acc_HR[:, part], max_1R[:, part] = sum_HR, new_1R
    for ref, carried_1R, sum_8R in zip((norm_1R, *entropy_1R), carried, sums, strict=True):
        ref[:, part] = carried_1R + jnp.sum(sum_8R, axis=0, keepdims=True)


def _pieces(begin: int, end: int, size: int) -> list[slice]:
    return [slice(at, min(at + size, end)) for at in range(begin, end, size)]


class _Pair(NamedTuple):
    """Of a block of keys and a part of a block of queries, float32 [S, R], see `flash`: the weights
    P, the gradient of the logits ds = P (dP - c - dH z), and that of the products, which factors
    multiply."""

    p_SR: jax.Array
    d_s_SR: jax.Array
    d_products_SR: jax.Array


def _pair(shape: Shape, step: GridStep, refs: Refs, part: slice, *, cut: bool) -> _Pair:
    factors_SR = _factors(refs, part)
    z_SR = _logits(shape, step, refs, part, factors_SR, cut=cut) - refs.lse[:, part]
    p_SR = jnp.exp(z_SR)
    d_p_SR = _dot(refs.v[...], refs.d_out[part, :], _NT)
    d_entropy_1R = None if refs.d_entropy is None else refs.d_entropy[:, part]
    d_s_SR = logit_gradient(p_SR, d_p_SR, z_SR, refs.c[:, part], d_entropy_1R)
    return _Pair(p_SR, d_s_SR, d_s_SR if factors_SR is None else d_s_SR * factors_SR)


def query_gradient_kernel(shape: Shape, step: GridStep, refs: Refs, outputs, scratch) -> None:
    """outputs: the gradient of q; where asked for that of the line."""
    (d_q, *d_line), (acc_HR,) = outputs, scratch

    _clear(step.first(), [acc_HR])
    _clear(step.p == 0, d_line)

    @step.work
    def _(*, cut):
        for part in _parts(shape):
            pair = _pair(shape, step, refs, part, cut=cut)
            _add_query_gradients(refs, part, pair, acc_HR)
            _add_line_gradient(shape, step, part, pair, d_line)

    @pl.when(step.last())
    def _():
        d_q[...] = acc_HR[...].T.astype(d_q.dtype)


def _add_query_gradients(refs: Refs, part: slice, pair: _Pair, acc_HR: Any) -> None:
    k_SH = refs.k[...]
    acc_HR[:, part] += _dot(k_SH, pair.d_products_SR.astype(k_SH.dtype), _TN)


def _add_line_gradient(
    shape: Shape, step: GridStep, part: slice, pair: _Pair, d_line: list[Any]
) -> None:
    """d_line: none where it is not wanted."""
    block, width = shape.row_block, part.stop - part.start
    for line in d_line:
        first = (step.i + shape.plan.k_blocks - 1 - step.j) * block + part.start
        at = pl.ds(pl.multiple_of(first, width), block + width)
        line[:, at] += _diagonal_sums(pair.d_s_SR)


def key_gradient_kernel(shape: Shape, step: GridStep, refs: Refs, outputs, scratch) -> None:
    """outputs: the gradients of k and v; where asked for that of the key bias."""
    _clear(step.first(), scratch)

    @step.work
    def _(*, cut):
        for part in _parts(shape):
            pair = _pair(shape, step, refs, part, cut=cut)
            _add_key_gradients(step, refs, part, pair, list(scratch), slice(None))

    @pl.when(step.last())
    def _():
        for out, sums in zip(outputs, scratch, strict=True):
            out[...] = sums[...].astype(out.dtype)


def gradient_kernel(shape: Shape, step: GridStep, refs: Refs, outputs, scratch) -> None:
    """outputs: the gradients of q, k and v; where asked for those of the key bias and of the line.
    Those of k, v and the key bias are of all keys, and kept for a group."""
    acc_HR, *sums = scratch
    d_q, *others = outputs
    kept, d_line = others[: len(sums)], others[len(sums) :]
    last_step = step.p == pl.num_programs(2) - 1
    _clear(step.first(), [acc_HR])
    _clear(step.p == 0, d_line)
    _clear((step.p == 0) & (step.g == 0), sums)

    @step.work
    def _(*, cut):
        block = shape.plan.k_block
        keys = pl.ds(pl.multiple_of(step.j * block, block), block)
        for part in _parts(shape):
            pair = _pair(shape, step, refs, part, cut=cut)
            _add_query_gradients(refs, part, pair, acc_HR)
            _add_key_gradients(step, refs, part, pair, sums, keys)
            _add_line_gradient(shape, step, part, pair, d_line)

    @pl.when(step.last())
    def _():
        d_q[...] = acc_HR[...].T.astype(d_q.dtype)

    @pl.when(last_step & (step.g == step.G - 1))
    def _():
        for out, all_keys in zip(kept, sums, strict=True):
            out[...] = all_keys[...].astype(out.dtype)


def _add_key_gradients(
    step: GridStep, refs: Refs, part: slice, pair: _Pair, sums: list[Any], keys: Any
) -> None:
    d_k_SH, d_v_SH, *d_bias_GS = sums
    q_RH, d_out_RH = refs.q[part, :], refs.d_out[part, :]
    d_k_SH[keys, :] += _dot(pair.d_products_SR.astype(q_RH.dtype), q_RH, _NN)
    d_v_SH[keys, :] += _dot(pair.p_SR.astype(d_out_RH.dtype), d_out_RH, _NN)
    for ref in d_bias_GS:
        ref[pl.ds(step.g, 1), keys] += _sums_by_key(pair.d_s_SR)


def _clear(when: Any, refs: Any) -> None:
    """Zeros in all of the refs."""

    @pl.when(when)
    def _():
        for ref in refs:
            ref[...] = jnp.zeros_like(ref)
