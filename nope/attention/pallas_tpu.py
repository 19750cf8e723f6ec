"""Attention on TPUs: one Pallas kernel forward and two backward.

Logits of a pair of blocks are [keys, queries], queries along the lanes: everything there is one of
per query (maximum, sums, lse, c) is then a row of full vector registers, and sums over keys are
additions of registers instead of reductions inside them. Of the products only the small operand
is ever transposed. `schedule` says which pairs are visited; nothing else is fetched.

Where a key/value head is shared and there are few queries, as in decoding, the heads of its group
are rows of one block, so that its keys are read once. In the gradients of keys and values the
heads of a group are steps of the grid.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from nope.attention import block_sizes, schedule
from nope.attention.backend import Call, of_kernel
from nope.attention.flash import Gradients, Operands, Rows, Rules
from nope.attention.layout import Plan
from nope.attention.schedule import CUT, FIRST, IDLE, LAST, Schedule
from nope.attention.structure import AttentionOutput, in_sight

# Stand-ins for -inf whose differences are numbers; see `chunked`.
_HIDDEN = -1e30
_FLOOR = -1e29
_LANES = 128  # of a vector register, and so the least that rows are padded to
# Not measured on a device: [512, 512] logits in float32 are 1 MiB, and the few arrays of that size
# that a step holds fit the 16 MiB of vector memory that a program is given by default, next to two
# buffers for every block of input.
_BLOCK = 512
_NN = (((1,), (0,)), ((), ()))  # x @ y
_NT = (((1,), (1,)), ((), ()))  # x @ y.T
_TN = (((0,), (0,)), ((), ()))  # x.T @ y


@dataclasses.dataclass(frozen=True)
class PallasTpu:
    """interpret: run the kernels operation by operation on any device.
    blocks: the largest numbers of queries and keys a block, by pass ('forward', 'backward'); a
    pass that is not there takes those measured on the device, if any, or a guess."""

    interpret: bool = False
    blocks: tuple[tuple[str, tuple[int, int]], ...] = ()

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        """As `nope.attention.flash.Kernel`."""
        dtype, operands = operands.q_BTNH.dtype, _native(operands)
        shape = _shape(self, rules, operands, 'forward')
        arrays = _by_head(shape, operands)
        rows = jax.ShapeDtypeStruct((*shape.grid_heads, 1, shape.rows), jnp.float32)
        outputs = [jax.ShapeDtypeStruct(arrays.q_BKRH.shape, arrays.q_BKRH.dtype), rows]
        specs = [_q_spec(shape), _row_spec(shape)]
        scratch = [_stat(shape), _stat(shape)]
        if rules.entropy:
            outputs, specs, scratch = [*outputs, rows], [*specs, specs[1]], [*scratch, _stat(shape)]
        out, *stats = _run(
            shape,
            _forward_kernel,
            schedule.by_query,
            arrays,
            outputs=outputs,
            out_specs=specs,
            scratch=[pltpu.VMEM((shape.head_dim, shape.row_block), jnp.float32), *scratch],
        )
        lse, *entropy = (_join_rows(shape, x) for x in stats)
        out_BTNH = _join_heads(shape, out).astype(dtype)
        return AttentionOutput(out_BTNH, lse, entropy[0] if entropy else None)

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, bias_gradient: bool
    ) -> Gradients:
        """As `nope.attention.flash.Kernel`."""
        dtype, operands = operands.q_BTNH.dtype, _native(operands)
        shape = _shape(self, rules, operands, 'backward')
        rows = rows._replace(d_out_BTNH=rows.d_out_BTNH.astype(shape.dtype))
        arrays = _by_head(shape, operands, rows)
        accumulator = pltpu.VMEM((shape.head_dim, shape.row_block), jnp.float32)
        outputs = [jax.ShapeDtypeStruct(arrays.q_BKRH.shape, arrays.q_BKRH.dtype)]
        specs = [_q_spec(shape)]
        if bias_gradient:
            line = (*shape.grid_heads, 1, shape.line)
            outputs.append(jax.ShapeDtypeStruct(line, jnp.float32))
            specs.append(pl.BlockSpec((None, None, 1, shape.line), lambda b, n, *_: (b, n, 0, 0)))
        d_q, *d_line = _run(
            shape,
            _query_gradient_kernel,
            schedule.by_query,
            arrays,
            outputs=outputs,
            out_specs=specs,
            scratch=[accumulator],
        )
        d_kv = jax.ShapeDtypeStruct(arrays.k_BKSH.shape, arrays.k_BKSH.dtype)
        sums = pltpu.VMEM((shape.plan.k_block, shape.head_dim), jnp.float32)
        d_k, d_v = _run(
            shape,
            _key_gradient_kernel,
            schedule.by_key,
            arrays,
            outputs=[d_kv, d_kv],
            out_specs=[_k_spec(shape, by_key=True)] * 2,
            scratch=[sums, sums],
        )
        d_line_ND = None
        if d_line:
            before = shape.plan.k_blocks * shape.plan.k_block - shape.plan.keys
            whole_ND = jnp.sum(d_line[0], axis=0)[:, 0]
            size = shape.plan.queries + shape.plan.keys - 1
            d_line_ND = whole_ND[:, before : before + size]
        d_q_BTNH = _join_heads(shape, d_q).astype(dtype)
        d_k_BSKH, d_v_BSKH = (
            x[:, :, : shape.plan.keys].swapaxes(1, 2).astype(dtype) for x in (d_k, d_v)
        )
        return Gradients(d_q_BTNH, d_k_BSKH, d_v_BSKH, d_line_ND)


def _native(operands: Operands) -> Operands:
    """float16, which TPUs lack, as float32."""
    if operands.q_BTNH.dtype != jnp.float16:
        return operands
    q, k, v = (x.astype(jnp.float32) for x in (operands.q_BTNH, operands.k_BSKH, operands.v_BSKH))
    return operands._replace(q_BTNH=q, k_BSKH=k, v_BSKH=v)


class _Shape(NamedTuple):
    """What is static about the grid. Queries are cut into blocks of `row_block` rows, which stand
    for `plan.q_block` positions; folded: the rows of a block are those of G heads."""

    kernel: PallasTpu
    plan: Plan
    rules: Rules
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    folded: bool
    row_block: int
    dtype: Any

    @property
    def groups(self) -> int:
        """Heads of the grid that read one key/value head."""
        return 1 if self.folded else self.heads // self.kv_heads

    @property
    def grid_heads(self) -> tuple[int, int]:
        return self.batch, self.kv_heads * self.groups

    @property
    def rows(self) -> int:
        return self.plan.q_blocks * self.row_block

    @property
    def line(self) -> int:
        return self.rows + self.plan.k_blocks * self.plan.k_block


class _Arrays(NamedTuple):
    """The operands with heads before rows, padded to whole blocks; ids and positions as rows."""

    q_BKRH: jax.Array
    k_BKSH: jax.Array
    v_BKSH: jax.Array
    line_N1D: jax.Array | None
    q_ids_B1R: jax.Array | None
    kv_ids_B1S: jax.Array | None
    at_1R: jax.Array
    offset: jax.Array
    d_out_BKRH: jax.Array | None = None
    lse_BK1R: jax.Array | None = None
    c_BK1R: jax.Array | None = None
    d_entropy_BK1R: jax.Array | None = None


def _shape(kernel: PallasTpu, rules: Rules, operands: Operands, kind_of_pass: str) -> _Shape:
    B, T, N, H = operands.q_BTNH.shape
    S, K = operands.k_BSKH.shape[1:3]
    lanes = 8 if kernel.interpret else _LANES
    itemsize = operands.q_BTNH.dtype.itemsize
    largest = (
        dict(kernel.blocks).get(kind_of_pass)
        or block_sizes.measured('pallas_tpu', kind_of_pass, itemsize, H)
        or [_BLOCK if H <= 128 else _BLOCK // 2] * 2
    )
    q_block, k_block = (
        block_sizes.fit(length, lanes, most) for length, most in zip((T, S), largest, strict=True)
    )
    folded = K < N and operands.line_ND is None and q_block >= N // K * T
    if operands.line_ND is not None:
        q_block = k_block = min(q_block, k_block)
    row_block = q_block
    if folded:
        q_block, row_block = T, -(-(N // K * T) // lanes) * lanes
    aligned = rules.offset == 0 and T == S and q_block == k_block
    plan = Plan(rules.causal, rules.window, aligned, rules.entropy, T, S, q_block, k_block)
    dtype = operands.q_BTNH.dtype
    return _Shape(kernel, plan, rules, B, N, K, H, folded, row_block, dtype)


def _by_head(shape: _Shape, operands: Operands, rows: Rows | None = None) -> _Arrays:
    plan, G = shape.plan, shape.heads // shape.kv_heads
    heads = functools.partial(_split_heads, shape)
    keys_to = plan.k_blocks * plan.k_block
    at_1T = operands.offset + jnp.arange(plan.queries, dtype=jnp.int32)[None]

    def row_ids(ids_XT: jax.Array) -> jax.Array:
        """[..., T] -> [..., R]: the same for all heads."""
        ids_XT = jnp.tile(ids_XT, (1, G)) if shape.folded else ids_XT
        return _pad(ids_XT, 1, shape.rows)

    line_N1D = q_ids = kv_ids = None
    if operands.line_ND is not None:
        before = keys_to - plan.keys
        after = shape.line - before - operands.line_ND.shape[1]
        line_N1D = jnp.pad(operands.line_ND, [(0, 0), (before, after)])[:, None]
    if operands.q_ids_BT is not None and operands.kv_ids_BS is not None:
        q_ids = row_ids(operands.q_ids_BT)[:, None]
        kv_ids = _pad(operands.kv_ids_BS, 1, keys_to)[:, None]
    return _Arrays(
        heads(operands.q_BTNH),
        _pad(operands.k_BSKH.swapaxes(1, 2), 2, keys_to),
        _pad(operands.v_BSKH.swapaxes(1, 2), 2, keys_to),
        line_N1D,
        q_ids,
        kv_ids,
        row_ids(at_1T),
        operands.offset,
        *(() if rows is None else (heads(rows.d_out_BTNH), *_split_rows(shape, rows))),
    )


def _pad(array: jax.Array, axis: int, size: int) -> jax.Array:
    widths = [(0, 0)] * array.ndim
    widths[axis] = 0, size - array.shape[axis]
    return array if array.shape[axis] == size else jnp.pad(array, widths)


def _split_heads(shape: _Shape, q_BTNH: jax.Array) -> jax.Array:
    """[B, T, N, H] -> [B, heads of the grid, rows, H]."""
    heads_first = q_BTNH.swapaxes(1, 2)
    if shape.folded:
        B, N, T, H = heads_first.shape
        heads_first = heads_first.reshape(B, shape.kv_heads, N // shape.kv_heads * T, H)
    return _pad(heads_first, 2, shape.rows)


def _join_heads(shape: _Shape, out: jax.Array) -> jax.Array:
    """[B, heads of the grid, rows, H] -> [B, T, N, H]."""
    T, H = shape.plan.queries, shape.head_dim
    used = shape.heads // shape.kv_heads * T if shape.folded else T
    return out[:, :, :used].reshape(shape.batch, shape.heads, T, H).swapaxes(1, 2)


def _split_rows(shape: _Shape, rows: Rows) -> list[jax.Array | None]:
    """[B, N, T] -> [B, heads of the grid, 1, rows]."""

    def split(x_BNT: jax.Array | None) -> jax.Array | None:
        if x_BNT is None:
            return None
        grid = x_BNT.reshape(*shape.grid_heads, 1, -1)
        return _pad(grid, 3, shape.rows)

    return [split(x) for x in (rows.lse_BNT, rows.c_BNT, rows.d_entropy_BNT)]


def _join_rows(shape: _Shape, x: jax.Array) -> jax.Array:
    """[B, heads of the grid, 1, rows] -> [B, N, T]."""
    T = shape.plan.queries
    used = shape.heads // shape.kv_heads * T if shape.folded else T
    return x[:, :, 0, :used].reshape(shape.batch, shape.heads, T)


def _stat(shape: _Shape) -> Any:
    return pltpu.VMEM((1, shape.row_block), jnp.float32)


def _spec(
    shape: _Shape, block: tuple[int | None, ...], index: Callable[..., Any], *, by_key: bool
) -> pl.BlockSpec:
    """index: from batch, head, key/value head, query block and key block to a place."""
    G = shape.groups

    def at(b, n, p, *rest):
        if by_key:
            g, q_P, k_P, _ = rest
            return index(b, n * G + g, n, q_P[p], k_P[p])
        q_P, k_P, _ = rest
        return index(b, n, n // G, q_P[p], k_P[p])

    return pl.BlockSpec(block, at)


def _q_spec(shape: _Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, shape.row_block, shape.head_dim)
    return _spec(shape, block, lambda b, n, k, i, j: (b, n, i, 0), by_key=by_key)


def _k_spec(shape: _Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, shape.plan.k_block, shape.head_dim)
    return _spec(shape, block, lambda b, n, k, i, j: (b, k, j, 0), by_key=by_key)


def _row_spec(shape: _Shape, *, by_key: bool = False) -> pl.BlockSpec:
    block = (None, None, 1, shape.row_block)
    return _spec(shape, block, lambda b, n, k, i, j: (b, n, 0, i), by_key=by_key)


class _Refs(NamedTuple):
    """One block of each of `_Arrays`; the line's two blocks that a pair of blocks needs."""

    q: Any
    k: Any
    v: Any
    line_low: Any
    line_high: Any
    q_ids: Any
    kv_ids: Any
    at: Any
    d_out: Any
    lse: Any
    c: Any
    d_entropy: Any


def _inputs(shape: _Shape, arrays: _Arrays, *, by_key: bool) -> tuple[_Refs, _Refs]:
    """(arrays, block specs), None where there is none."""
    q, k, row = (make(shape, by_key=by_key) for make in (_q_spec, _k_spec, _row_spec))
    spec = functools.partial(_spec, shape, by_key=by_key)
    R, S, last = shape.row_block, shape.plan.k_block, shape.plan.k_blocks - 1
    specs = _Refs(
        q, k, k,
        spec((None, 1, R), lambda b, n, k, i, j: (n, 0, i + last - j)),
        spec((None, 1, R), lambda b, n, k, i, j: (n, 0, i + last - j + 1)),
        spec((None, 1, R), lambda b, n, k, i, j: (b, 0, i)),
        spec((None, 1, S), lambda b, n, k, i, j: (b, 0, j)),
        spec((1, R), lambda b, n, k, i, j: (0, i)),
        q, row, row, row,
    )  # fmt: skip
    a = arrays
    return _Refs(
        a.q_BKRH, a.k_BKSH, a.v_BKSH, a.line_N1D, a.line_N1D, a.q_ids_B1R, a.kv_ids_B1S, a.at_1R,
        a.d_out_BKRH, a.lse_BK1R, a.c_BK1R, a.d_entropy_BK1R,
    ), specs  # fmt: skip


def _run(
    shape: _Shape,
    kernel: Callable[..., None],
    make_schedule: Callable[..., Schedule],
    arrays: _Arrays,
    *,
    outputs: list[jax.ShapeDtypeStruct],
    out_specs: list[pl.BlockSpec],
    scratch: list[Any],
) -> list[jax.Array]:
    """kernel(shape, step, refs, output refs, scratch refs) over the grid of a schedule."""
    by_key = make_schedule is schedule.by_key
    static = shape.rules.offset
    tables = make_schedule(shape.plan, arrays.offset if static is None else static)
    given, specs = _inputs(shape, arrays, by_key=by_key)
    present = [i for i, array in enumerate(given) if array is not None]

    def body(q_P, k_P, flags_P, *refs):
        p = pl.program_id(2)
        step = _Step(
            p, q_P[p], k_P[p], flags_P[p], *((pl.program_id(3), shape.groups) if by_key else (0, 1))
        )
        named: list[Any] = [None] * len(given)
        for i, ref in zip(present, refs, strict=False):
            named[i] = ref
        others = refs[len(present) :]
        kernel(shape, step, _Refs(*named), others[: len(outputs)], others[len(outputs) :])

    heads = shape.kv_heads if by_key or shape.folded else shape.heads
    parallel: list[Any] = ['parallel', 'parallel', 'arbitrary', 'arbitrary']
    grid = (shape.batch, heads, tables.q_P.shape[0], *((shape.groups,) if by_key else ()))
    return pl.pallas_call(
        body,
        out_shape=outputs,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=3,
            grid=grid,
            in_specs=[specs[i] for i in present],
            out_specs=out_specs,
            scratch_shapes=scratch,
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=parallel[: len(grid)]),
        interpret=shape.kernel.interpret,
        name=kernel.__name__.strip('_'),
    )(*tables, *(given[i] for i in present))


class _Step(NamedTuple):
    """Where in its grid a kernel is: step p on blocks i and j, head g of a group of G."""

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


def _logits(shape: _Shape, step: _Step, refs: _Refs, *, cut: bool) -> jax.Array:
    """float32 [S, R] of one pair of blocks, hidden ones `_HIDDEN`."""
    s_SR = _dot(refs.k[...], refs.q[...], _NT)
    if refs.line_low is not None:
        s_SR += _toeplitz(jnp.concatenate([refs.line_low[...], refs.line_high[...]], axis=1))
    seen_SR = _seen(shape, step, refs, cut=cut)
    return s_SR if seen_SR is None else jnp.where(seen_SR, s_SR, _HIDDEN)


def _seen(shape: _Shape, step: _Step, refs: _Refs, *, cut: bool) -> jax.Array | None:
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
        # A row of ids becomes a column by way of a transposition, for which registers must be full.
        ids_8S = jnp.broadcast_to(refs.kv_ids[...], (8, plan.k_block))
        rules.append(ids_8S.T[:, :1] == refs.q_ids[...])
    return functools.reduce(jnp.logical_and, rules) if rules else None


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


def _forward_kernel(shape: _Shape, step: _Step, refs: _Refs, outputs, scratch) -> None:
    acc_HR, max_1R, norm_1R, *entropy_1R = scratch

    @pl.when(step.first())
    def _():
        acc_HR[...] = jnp.zeros_like(acc_HR)
        max_1R[...] = jnp.full_like(max_1R, _FLOOR)
        for ref in (norm_1R, *entropy_1R):
            ref[...] = jnp.zeros_like(ref)

    @step.work
    def _(*, cut):
        s_SR = _logits(shape, step, refs, cut=cut)
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


def _pair(shape: _Shape, step: _Step, refs: _Refs, *, cut: bool) -> tuple[jax.Array, jax.Array]:
    """The weights P and ds = P (dP - c - dH z), float32 [S, R]; see `flash`."""
    z_SR = _logits(shape, step, refs, cut=cut) - refs.lse[...]
    p_SR = jnp.exp(z_SR)
    d_p_SR = _dot(refs.v[...], refs.d_out[...], _NT) - refs.c[...]
    if refs.d_entropy is not None:
        d_p_SR -= refs.d_entropy[...] * z_SR
    return p_SR, p_SR * d_p_SR


def _query_gradient_kernel(shape: _Shape, step: _Step, refs: _Refs, outputs, scratch) -> None:
    (d_q, *d_line), (acc_HR,) = outputs, scratch

    @pl.when(step.first())
    def _():
        acc_HR[...] = jnp.zeros_like(acc_HR)

    for line in d_line:

        @pl.when(step.p == 0)
        def _(line=line):
            line[...] = jnp.zeros_like(line)

    @step.work
    def _(*, cut):
        _, d_s_SR = _pair(shape, step, refs, cut=cut)
        k_SH = refs.k[...]
        acc_HR[...] += _dot(k_SH, d_s_SR.astype(k_SH.dtype), _TN)
        for line in d_line:
            block = shape.row_block
            first = pl.multiple_of((step.i + shape.plan.k_blocks - 1 - step.j) * block, block)
            line[:, pl.ds(first, 2 * block)] += _diagonal_sums(d_s_SR)

    @pl.when(step.last())
    def _():
        d_q[...] = acc_HR[...].T.astype(d_q.dtype)


def _key_gradient_kernel(shape: _Shape, step: _Step, refs: _Refs, outputs, scratch) -> None:
    @pl.when(step.first())
    def _():
        for ref in scratch:
            ref[...] = jnp.zeros_like(ref)

    d_k_SH, d_v_SH = scratch

    @step.work
    def _(*, cut):
        p_SR, d_s_SR = _pair(shape, step, refs, cut=cut)
        q_RH, d_out_RH = refs.q[...], refs.d_out[...]
        d_k_SH[...] += _dot(d_s_SR.astype(q_RH.dtype), q_RH, _NN)
        d_v_SH[...] += _dot(p_SR.astype(d_out_RH.dtype), d_out_RH, _NN)

    @pl.when(step.last())
    def _():
        for out, sums in zip(outputs, scratch, strict=True):
            out[...] = sums[...].astype(out.dtype)


def _unsupported(call: Call) -> str | None:
    if call.platform != 'tpu':
        return f'the device is a {call.platform}, not a TPU'
    return None


_SMALL_BLOCKS = ('forward', (64, 64)), ('backward', (64, 64))

BACKENDS = (
    of_kernel('pallas_tpu', PallasTpu(), _unsupported),
    # The same kernels, interpreted operation by operation; slow; for tests.
    of_kernel('pallas_tpu_interpret', PallasTpu(True, _SMALL_BLOCKS), lambda call: None),
)
