"""Attention on TPUs: one Pallas kernel forward, and one or two backward.

Logits of a pair of blocks are [keys, queries], queries along the lanes: everything there is one of
per query (maximum, sums, lse, c) is then a row of full vector registers, and sums over keys are
additions of registers instead of reductions inside them. Of the products only the small operand
is ever transposed. `schedule` says which pairs are visited; nothing else is fetched.

In decoding, with few queries, the heads of a group are rows of one block, so that their keys are
read once. Biases by head exclude that. In the gradients of keys and values the heads of a group are
steps of the grid.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax
import jax.numpy as jnp

from nope.attention.backend import Call, of_kernel
from nope.attention.blocks import BlockPlan
from nope.attention.flash import Gradients, Operands, Rows, Rules, Wanted
from nope.attention.pallas_tpu.arrays import Shape, by_head, join_heads, join_line, join_rows
from nope.attention.pallas_tpu.backward import launch_backward
from nope.attention.pallas_tpu.launch import q_spec, row_spec, run, stat
from nope.attention.pallas_tpu.programs import forward_kernel
from nope.attention.pallas_tpu.sizes import PARTS, TpuBlocks, fit, kept_fit, part_of
from nope.attention.structure import AttentionOutput
from nope.runtime.libraries import pltpu

_LANES = 128  # of a vector register, and so the least that rows are padded to
# Not measured on a device. The products of a step of [512, 512] logits take a v5e 0.7 microseconds
# at its peak, to which its start adds: larger steps are fewer starts. [1024, 1024] float32 logits
# are 4 MiB; where half precision keeps the blocks of input small and there is no line by distance,
# the few such arrays of a step fit the 16 MiB of vector memory that a program is given.
_BLOCK = 512
_LARGE_BLOCK = 1024
_LONG = 4096  # from which the pairs on the diagonal, of which half is hidden, are few
_MOST_HEAD_DIM = 256
_MOST_STEPS = 2**16  # whose table fits, with some room, into 1 MiB of scalar memory


@dataclasses.dataclass(frozen=True)
class PallasTpu:
    """interpret: run the kernels operation by operation on any device.
    blocks: by pass ('forward', 'backward'); a pass that is not there takes those of `_square`."""

    interpret: bool = False
    blocks: tuple[tuple[str, TpuBlocks], ...] = ()

    by_slope: ClassVar[bool] = False

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        """Forward pass; see `nope.attention.flash.Kernel`."""
        dtype, operands = operands.q_BTNH.dtype, _native(operands)
        shape = _shape(self, rules, operands, 'forward')
        arrays = by_head(shape, operands)
        rows = jax.ShapeDtypeStruct((*shape.grid_heads, 1, shape.rows), jnp.float32)
        outputs = [jax.ShapeDtypeStruct(arrays.q_BKRH.shape, arrays.q_BKRH.dtype), rows]
        specs = [q_spec(shape), row_spec(shape)]
        scratch = [stat(shape), stat(shape)]
        if rules.entropy:
            outputs, specs, scratch = [*outputs, rows], [*specs, specs[1]], [*scratch, stat(shape)]
        if rules.max_logit:
            outputs, specs = [*outputs, rows], [*specs, specs[1]]
        out, *stats = run(
            shape,
            forward_kernel,
            arrays,
            by_key=False,
            outputs=outputs,
            out_specs=specs,
            scratch=[pltpu.VMEM((shape.head_dim, shape.row_block), jnp.float32), *scratch],
        )
        lse, *more = (join_rows(shape, x) for x in stats)
        entropy = more.pop(0) if rules.entropy else None
        out_BTNH = join_heads(shape, out).astype(dtype)
        return AttentionOutput(out_BTNH, lse, entropy, *more)

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients:
        """Backward pass; see `nope.attention.flash.Kernel`."""
        dtype, operands = operands.q_BTNH.dtype, _native(operands)
        shape = _shape(self, rules, operands, 'backward')
        rows = rows._replace(d_out_BTNH=rows.d_out_BTNH.astype(shape.dtype))
        arrays = by_head(shape, operands, rows)
        d = launch_backward(shape, arrays, wanted)
        d_line_ND = join_line(shape, d.line[0]) if wanted.line else None
        d_q_BTNH = join_heads(shape, d.q_BKRH).astype(dtype)
        d_k_BSKH, d_v_BSKH = (
            x[:, :, : shape.plan.keys].swapaxes(1, 2).astype(dtype) for x in (d.k_BKSH, d.v_BKSH)
        )
        d_key_bias_BNS = None
        if d.key_bias:
            whole_BNS = d.key_bias[0].reshape(shape.batch, shape.heads, -1)
            d_key_bias_BNS = whole_BNS[..., : shape.plan.keys]
        return Gradients(d_q_BTNH, d_k_BSKH, d_v_BSKH, d_line_ND, d_key_bias_BNS)


def _native(operands: Operands) -> Operands:
    """float16, which TPUs lack, as float32."""
    if operands.q_BTNH.dtype != jnp.float16:
        return operands
    q, k, v = (x.astype(jnp.float32) for x in (operands.q_BTNH, operands.k_BSKH, operands.v_BSKH))
    return operands._replace(q_BTNH=q, k_BSKH=k, v_BSKH=v)


def _shape(kernel: PallasTpu, rules: Rules, operands: Operands, kind_of_pass: str) -> Shape:
    B, T, N, H = operands.q_BTNH.shape
    S, K = operands.k_BSKH.shape[1:3]
    lanes = 8 if kernel.interpret else _LANES
    at_origin = rules.offset == 0 and T == S
    half = operands.q_BTNH.dtype.itemsize == 2
    plain = half and operands.line_ND is None and operands.factors_ND is None
    largest = dict(kernel.blocks).get(kind_of_pass)
    if largest is None:
        side = _square(T, S, H, rules.causal, rules.window, at_origin, plain).k_block
        largest = TpuBlocks(side, side, PARTS[kind_of_pass])
    q_block = fit(T, lanes, largest.queries)
    k_block = fit(S, lanes, largest.keys)
    unbiased = operands.line_ND is None and operands.key_bias_BNS is None
    folded = K < N and unbiased and q_block >= N // K * T
    if operands.line_ND is not None:
        q_block = k_block = min(q_block, k_block)
    row_block = q_block
    if folded:
        q_block, row_block = T, -(-(N // K * T) // lanes) * lanes
    aligned = at_origin and q_block == k_block
    plan = BlockPlan(rules.causal, rules.window, aligned, rules.entropy, T, S, q_block, k_block)
    part = part_of(row_block, largest.part, lanes)
    dtype = operands.q_BTNH.dtype
    # Few queries have little to recompute, and the sums of all keys would take memory from others.
    many = kind_of_pass == 'backward' and lanes <= T
    fused = many and kept_fit(plan.padded_keys, H, dtype.itemsize)
    return Shape(kernel.interpret, plan, rules, B, N, K, H, folded, row_block, part, fused, dtype)


def _square(
    T: int, S: int, H: int, causal: bool, window: int | None, aligned: bool, plain: bool
) -> BlockPlan:
    """Square blocks. They double where there would be too many steps, and where a long plain input
    fills them. plain: half precision without a bias by distance."""
    side = _BLOCK if H <= 128 else _BLOCK // 2
    if plain and H <= 128 and _fills(T, window) and _fills(S, window):
        side = _LARGE_BLOCK
    plan = BlockPlan(causal, window, aligned, False, T, S, side, side)
    if plan.most_pairs <= _MOST_STEPS or side == _LARGE_BLOCK:
        return plan
    return dataclasses.replace(plan, q_block=2 * side, k_block=2 * side)


def _fills(length: int, window: int | None) -> bool:
    """Whether large blocks are mostly within the length and the window."""
    beyond = -length % _LARGE_BLOCK
    return min(length, window or length) >= _LONG and beyond <= length // 8


def _unsupported(call: Call) -> str | None:
    if call.platform != 'tpu':
        return f'the device is a {call.platform}, not a TPU'
    if call.head_dim > _MOST_HEAD_DIM:
        return f'the head dim is {call.head_dim}, its blocks fit up to {_MOST_HEAD_DIM}'
    T, S = call.queries, call.keys
    aligned = not call.offset and T == S
    plain = call.dtype == 'bfloat16' and call.bias is None
    plan = _square(T, S, call.head_dim, call.causal, call.window, aligned, plain)
    side = plan.k_block
    if plan.most_pairs > _MOST_STEPS:
        return (
            f'T={T} and S={S} make more than {_MOST_STEPS:,} pairs of blocks of {side}, whose '
            'table does not fit into scalar memory'
        )
    if side > _BLOCK and call.dtype != 'bfloat16':  # float16 is computed in float32
        return (
            f'blocks of {side} in float32 do not fit into vector memory, T={T} and S={S} need them'
        )
    return None


BACKEND = of_kernel('pallas_tpu', PallasTpu(), _unsupported)
