"""Array layout of the TPU kernels: heads before rows, padded to whole blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.blocks import BlockPlan
from nope.attention.flash import BEYOND, Operands, Rows, Rules


class Shape(NamedTuple):
    """Static shape of the grid. Queries are cut into blocks of `row_block` rows, which stand for
    `plan.q_block` positions, and those into parts of `part` rows; folded: the rows of a block are
    those of G heads. fused: the backward pass is one kernel."""

    interpret: bool
    plan: BlockPlan
    rules: Rules
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    folded: bool
    row_block: int
    part: int
    fused: bool
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


class Arrays(NamedTuple):
    """The operands with heads before rows, padded to whole blocks; ids and positions as rows."""

    q_BKRH: jax.Array
    k_BKSH: jax.Array
    v_BKSH: jax.Array
    line_N1D: jax.Array | None
    factors_N1D: jax.Array | None
    key_bias_BN1S: jax.Array | None
    q_ids_B1R: jax.Array | None
    kv_ids_B1S: jax.Array | None
    at_1R: jax.Array
    offset: jax.Array
    d_out_BKRH: jax.Array | None = None
    lse_BK1R: jax.Array | None = None
    c_BK1R: jax.Array | None = None
    d_entropy_BK1R: jax.Array | None = None


def by_head(shape: Shape, operands: Operands, rows: Rows | None = None) -> Arrays:
    plan, G = shape.plan, shape.heads // shape.kv_heads
    keys_to = plan.k_blocks * plan.k_block
    at_1T = operands.offset + jnp.arange(plan.queries, dtype=jnp.int32)[None]

    def heads(x_BTNH: jax.Array) -> jax.Array:
        """[B, T, N, H] -> [B, heads of the grid, rows, H]."""
        x_BNTH = x_BTNH.swapaxes(1, 2)
        return _pad(x_BNTH.reshape(*shape.grid_heads, -1, x_BNTH.shape[-1]), 2, shape.rows)

    def row_ids(ids_XT: jax.Array) -> jax.Array:
        """[..., T] -> [..., R]: the same for all heads."""
        ids_XT = jnp.tile(ids_XT, (1, G)) if shape.folded else ids_XT
        return _pad(ids_XT, 1, shape.rows)

    def by_distance(line_ND: jax.Array | None) -> jax.Array | None:
        if line_ND is None:
            return None
        before = keys_to - plan.keys
        after = shape.line - before - line_ND.shape[1]
        return jnp.pad(line_ND, [(0, 0), (before, after)])[:, None]

    line_N1D, factors_N1D = by_distance(operands.line_ND), by_distance(operands.factors_ND)
    key_bias_BN1S = q_ids = kv_ids = None
    if operands.key_bias_BNS is not None:
        key_bias_BN1S = _pad(operands.key_bias_BNS[:, :, None], 3, keys_to)
    if operands.q_ids_BT is not None and operands.kv_ids_BS is not None:
        q_ids = row_ids(operands.q_ids_BT)[:, None]
        kv_ids = _pad(operands.kv_ids_BS, 1, keys_to)[:, None]
    return Arrays(
        heads(operands.q_BTNH),
        _pad(operands.k_BSKH.swapaxes(1, 2), 2, keys_to),
        _pad(operands.v_BSKH.swapaxes(1, 2), 2, keys_to),
        line_N1D,
        factors_N1D,
        key_bias_BN1S,
        q_ids,
        kv_ids,
        row_ids(at_1T),
        operands.offset,
        *(() if rows is None else (heads(rows.d_out_BTNH), *_split_rows(shape, rows))),
    )


def _pad(array: jax.Array, axis: int, size: int, beyond: float = 0.0) -> jax.Array:
    widths = [(0, 0)] * array.ndim
    widths[axis] = 0, size - array.shape[axis]
    if array.shape[axis] == size:
        return array
    return jnp.pad(array, widths, constant_values=beyond)


def join_heads(shape: Shape, out: jax.Array) -> jax.Array:
    """[B, heads of the grid, rows, H] -> [B, T, N, H]."""
    T, H = shape.plan.queries, shape.head_dim
    used = shape.heads // shape.kv_heads * T if shape.folded else T
    return out[:, :, :used].reshape(shape.batch, shape.heads, T, H).swapaxes(1, 2)


def _split_rows(shape: Shape, rows: Rows) -> list[jax.Array | None]:
    """[B, N, T] -> [B, heads of the grid, 1, rows]."""

    def split(x_BNT: jax.Array | None, beyond: float = 0.0) -> jax.Array | None:
        if x_BNT is None:
            return None
        return _pad(x_BNT.reshape(*shape.grid_heads, 1, -1), 3, shape.rows, beyond)

    return [split(rows.lse_BNT, BEYOND), split(rows.c_BNT), split(rows.d_entropy_BNT)]


def join_rows(shape: Shape, x: jax.Array) -> jax.Array:
    """[B, heads of the grid, 1, rows] -> [B, N, T]."""
    T = shape.plan.queries
    used = shape.heads // shape.kv_heads * T if shape.folded else T
    return x[:, :, 0, :used].reshape(shape.batch, shape.heads, T)


def join_line(shape: Shape, x: jax.Array) -> jax.Array:
    """[B, heads of the grid, 1, line] -> [N, T + S - 1], summed over the batch."""
    before = shape.plan.k_blocks * shape.plan.k_block - shape.plan.keys
    size = shape.plan.queries + shape.plan.keys - 1
    whole_ND = jnp.sum(x, axis=0)[:, 0]
    return whole_ND[:, before : before + size]
