"""Building blocks of the `mosaic_gpu` kernels: shapes, masks, products, copies.

A block of threads (CTA) is three warpgroups of 128 threads. One copies blocks of rows from global
to shared memory (TMA) and needs few registers; the other two compute, 64 rows each, the height of
one `wgmma`. Each buffer has a barrier that says it is filled and one that says it is free again.

Logits s are natural; the kernels work with s log2(e), because the exponential of the hardware is
of base 2 and the factor is part of a multiply-add that is there anyway.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu

from nope.attention.blocks import BlockRange, visible_blocks
from nope.attention.flash import Rules

plgpu: Any = mosaic_gpu  # what its functions take differs between the versions of JAX

ROWS = 64  # of a warpgroup
COMPUTE = 2  # warpgroups that compute
TILE = ROWS * COMPUTE  # rows of a CTA
MEMORY = COMPUTE  # index of the warpgroup that copies

# A thread's registers: 64 K of them for 2 x 128 threads that compute and 128 that copy.
COMPUTE_REGISTERS, MEMORY_REGISTERS = 232, 40

# KiB of shared memory for buffers of q, k, v and dout; a program can have 227.
BUFFERS_KIB = 200

# Bytes of keys and values of a call that stay in the second-level cache, 50 MiB on an H100 or H200,
# next to what else goes through it.
SECOND_LEVEL_CACHE = 32 * 2**20

LOG2E, LN2 = math.log2(math.e), math.log(2)

# How wgmma's results lie in the registers, and one number a row or a column of them.
_MATRIX = plgpu.Layout.WGMMA
BY_ROW, BY_COLUMN = _MATRIX.reduce(1), _MATRIX.reduce(0)


@dataclasses.dataclass(frozen=True)
class HopperShape:
    """Static shape of a kernel of a call.

    step: keys of a step of the kernel (in the gradients of k and v: queries), 64 or 128.
    queries, keys: padded to multiples of `TILE`. real_keys: keys before that.
    """

    step: int
    rules: Rules
    interpret: bool
    batch: int
    queries: int
    keys: int
    real_keys: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: Any
    segmented: bool

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads

    def stages(self, held: int) -> int:
        """Number of pairs of buffers [step, H] that fit next to `held` rows of H: 2 to 4."""
        rows = BUFFERS_KIB * 1024 // (self.head_dim * self.dtype.itemsize)
        return max(2, min(4, (rows - held) // (2 * self.step)))


class HopperRefs(NamedTuple):
    """References of a kernel to global and shared memory and its barriers; None for what the call
    or the kernel does not have.

    The inputs are those of `Arrays`, d_out and the rows of `backward.stack_rows`. Outputs, shared
    memory (`_smem`) and barriers follow. A `_ready` barrier says that memory is filled, a `_free`
    one that it may be filled again. The computing warpgroups take turns by `turn`.
    """

    q: Any
    k: Any
    v: Any
    key_bias: Any = None
    slopes: Any = None
    q_ids: Any = None
    kv_ids: Any = None
    offset: Any = None
    d_out: Any = None
    rows: Any = None

    out: Any = None
    lse: Any = None
    entropy: Any = None
    max_logit: Any = None
    d_q: Any = None
    d_k: Any = None
    d_v: Any = None
    d_key_bias: Any = None

    q_smem: Any = None
    k_smem: Any = None
    v_smem: Any = None
    d_out_smem: Any = None
    rows_smem: Any = None
    bias_smem: Any = None
    ids_smem: Any = None
    lse_smem: Any = None
    entropy_smem: Any = None
    max_smem: Any = None
    sums_smem: Any = None

    q_ready: Any = None
    k_ready: Any = None
    v_ready: Any = None
    kv_ready: Any = None
    k_free: Any = None
    v_free: Any = None
    ready: Any = None
    free: Any = None
    turn: Any = None

    @property
    def biased(self) -> bool:
        """Whether there is a number by key in the logits."""
        return self.key_bias is not None or self.slopes is not None


class Tile(NamedTuple):
    """Tile that a program works on: `TILE` queries, or keys, of one head of the grid.

    wg: index of the warpgroup. number: of the tile. position: of the tile's first query among the
    keys, for a tile of keys of the first query of all. seen: the blocks of the other side.
    """

    batch: jax.Array
    head: jax.Array
    wg: jax.Array
    number: jax.Array
    position: Any
    seen: BlockRange

    def rows(self, warpgroup: Any) -> Any:
        """Those of a warpgroup."""
        return pl.ds(self.number * TILE + warpgroup * ROWS, ROWS)


def grid(shape: HopperShape, heads: int, tiles: int) -> dict[str, int]:
    """Programs of a kernel, a tile of a head each, in the order in which a GPU starts them: the
    last name changes fastest.

    A multiprocessor takes the next program when it has done one. With `tile` slowest every head's
    longest tiles come first, and what is left over at the end is short. Where the second-level
    cache is too small for the keys and values of all heads, the tiles of one head follow each
    other. Then there are many of them, and the last ones fill the gaps.
    """
    row = 2 * shape.head_dim * shape.dtype.itemsize
    if shape.batch * shape.keys * shape.kv_heads * row <= SECOND_LEVEL_CACHE:
        return {'tile': tiles, 'head': heads, 'batch': shape.batch}
    return {'head': heads, 'tile': tiles, 'batch': shape.batch}


def _first_position(shape: HopperShape, offset: Any) -> Any:
    return shape.rules.offset if offset is None else offset[0]


def tile_of_queries(shape: HopperShape, offset: Any) -> Tile:
    """Under a causal rule the last tiles have most to do: they go first."""
    batch, head, wg = lax.axis_index('batch'), lax.axis_index('head'), lax.axis_index('wg')
    rules, number = shape.rules, shape.queries // TILE - 1 - lax.axis_index('tile')
    position = _first_position(shape, offset) + number * TILE
    seen = visible_blocks(
        position, position + (TILE - 1), rules.behind, rules.ahead, shape.real_keys, shape.step
    )
    return Tile(batch, head, wg, number, position, seen)


def tile_of_keys(shape: HopperShape, offset: Any) -> Tile:
    """Under a causal rule the first tiles have most to do."""
    batch, head, wg = lax.axis_index('batch'), lax.axis_index('head'), lax.axis_index('wg')
    rules, number = shape.rules, lax.axis_index('tile')
    position = _first_position(shape, offset)
    # What a key is seen from is what a query sees, in the other direction.
    first = number * TILE - position
    seen = visible_blocks(
        first, first + (TILE - 1), rules.ahead, rules.behind, shape.queries, shape.step
    )
    return Tile(batch, head, wg, number, position, seen)


def visible(
    shape: HopperShape,
    size: tuple[int, int],
    q_axis: int,
    q_first: jax.Array,
    k_first: jax.Array,
    q_ids: jax.Array | None,
    k_ids: jax.Array | None,
) -> jax.Array:
    """The rules on one block of logits, whose queries run along `q_axis`.

    q_first: position of the first query among the keys. q_ids, k_ids: segments, by row or column.
    """
    # Compared by key: those of a thread are as many numbers as it has columns, and not as many as
    # it has logits, which would be more registers than there are.
    k_index = plgpu.broadcasted_iota(jnp.int32, size, 1 - q_axis, layout=_MATRIX)
    behind, ahead = shape.rules.behind, shape.rules.ahead
    seen = []
    if behind is not None or ahead is not None:
        q_index = plgpu.broadcasted_iota(jnp.int32, size, q_axis, layout=_MATRIX)
        if ahead is not None:
            seen.append(k_index <= q_index + (q_first - k_first + ahead))
        if behind is not None:
            seen.append(k_index >= q_index + (q_first - k_first - behind))
    if shape.keys > shape.real_keys:
        seen.append(k_index < shape.real_keys - k_first)
    if q_ids is not None and k_ids is not None:
        q_ids = lax.broadcast_in_dim(q_ids, size, [q_axis])
        seen.append(q_ids == lax.broadcast_in_dim(k_ids, size, [1 - q_axis]))
    result = seen[0]
    for rule in seen[1:]:
        result &= rule
    return result


def by_row(x: jax.Array, size: tuple[int, ...]) -> jax.Array:
    """[rows] -> [rows, columns]."""
    return lax.broadcast_in_dim(x, size, [0])


def by_column(x: jax.Array, size: tuple[int, ...]) -> jax.Array:
    """[columns] -> [rows, columns]."""
    return lax.broadcast_in_dim(x, size, [1])


def with_alibi(
    key_bias: jax.Array | None, slope: jax.Array, keys: int, from_tile: jax.Array, layout: Any
) -> jax.Array:
    """[keys]: the slope times the distance from the first query of the tile to each key of a block,
    and a key bias where there is one. The first key is `from_tile` ahead. So each key has one
    number, and all logits of a row lack the same."""
    at = plgpu.broadcasted_iota(jnp.float32, (keys,), 0, layout=layout)
    alibi = slope * (at + from_tile.astype(jnp.float32))
    return alibi if key_bias is None else key_bias + alibi


def biased(
    shape: HopperShape,
    logits: jax.Array,
    bias_smem: Any,
    slot: jax.Array,
    slope: jax.Array | None,
    from_tile: Callable[[], jax.Array],
) -> jax.Array:
    """Logits of a block, keys in columns, with the key bias of a slot and ALiBi's. from_tile: as in
    `with_alibi`, asked for only there."""
    bias_S = load_slot(shape, bias_smem, slot)
    if slope is not None:
        bias_S = with_alibi(bias_S, slope, logits.shape[1], from_tile(), BY_COLUMN)
    return logits if bias_S is None else logits + by_column(bias_S, logits.shape)


def zeros(*size: int) -> jax.Array:
    """float32, laid out as a product or as one number for each of its rows."""
    return plgpu.layout_cast(jnp.zeros(size, jnp.float32), _MATRIX if len(size) == 2 else BY_ROW)


# value(n) of a product that has begun: waits for all that have but the last n, which are others.
Value = Callable[[int], jax.Array]


def product(
    shape: HopperShape, a: Any, b: Any, use: Callable[[Value], Any], onto: jax.Array | None = None
) -> Any:
    """use(value of float32 onto + a @ b.T), begun: a and b in shared memory."""
    if shape.interpret and onto is not None:
        return _interpreted(lambda: onto + _dot(a[...], b[...].T), use)
    return _begun(onto, (a.shape[0], b.shape[0]), a, b.transpose((1, 0)), use)


def weigh(
    shape: HopperShape, a: jax.Array, b: Any, use: Callable[[Value], Any], onto: jax.Array
) -> Any:
    """use(value of float32 onto + a @ b), begun: a in registers, b in shared memory."""
    if shape.interpret:
        return _interpreted(lambda: onto + _dot(a, b[...]), use)
    return _begun(onto, onto.shape, a, b, use)


def _begun(onto: Any, size: tuple[int, ...], a: Any, b: Any, use: Callable[[Value], Any]) -> Any:
    def multiply(total):
        if onto is not None:
            total[...] = onto
        plgpu.wgmma(total, a, b)
        return use(lambda n: plgpu.wgmma_accumulator_load(total, wait_n=n))

    return pl.run_scoped(multiply, plgpu.ACC(size, jnp.float32))


def _interpreted(result: Callable[[], jax.Array], use: Callable[[Value], Any]) -> Any:
    """The interpreter's wgmma takes no operand from registers and no sum that has begun."""
    value = result()
    plgpu.commit_smem()
    return use(lambda n: value)


_dot = functools.partial(jnp.dot, preferred_element_type=jnp.float32)


def load(shape: HopperShape, ref: Any, layout: Any) -> jax.Array:
    """All of a reference to shared memory. A copy may write there once the reader has arrived at
    the barrier that the copy waits for; only what a reader wrote itself would need a fence."""
    result = _load(ref, layout=layout)
    if shape.interpret:
        plgpu.commit_smem()  # the interpreter calls it a race without one
    return result


def slope_of(refs: HopperRefs, head: jax.Array) -> jax.Array | None:
    """ALiBi's slope of a head; None where the call has none."""
    return None if refs.slopes is None else refs.slopes[head]


def ids_of(ids: Any, tile: Tile) -> jax.Array | None:
    """Segment ids of a warpgroup's rows of the tile; None where the call has none."""
    return None if ids is None else load_global(ids.at[tile.batch, tile.rows(tile.wg)])


def load_slot(shape: HopperShape, smem: Any, slot: jax.Array) -> jax.Array | None:
    """Numbers of a slot by column (segment ids, a key bias); None where the call has none."""
    return None if smem is None else load(shape, smem.at[slot], BY_COLUMN)


def store(x: jax.Array, smem: Any, gmem: Any) -> None:
    """Numbers to global memory by way of shared memory, which is free again afterwards."""
    smem[...] = x
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(smem, gmem)
    plgpu.wait_smem_to_gmem(0)


def load_global(ref: Any) -> jax.Array:
    """All of a reference to global memory, a number a row."""
    return _load(ref, layout=BY_ROW, optimized=False)


def _load(ref: Any, **how: Any) -> jax.Array:
    has_index = 'idx' in inspect.signature(plgpu.load).parameters  # until JAX 0.10
    return plgpu.load(ref, *([()] if has_index else []), **how)


def tiles(shape: HopperShape, *size: int) -> Any:
    """Shared memory for rows of H that wgmma reads: 8 x 64 tiles, swizzled."""
    transforms = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
    return plgpu.SMEM((*size, shape.head_dim), shape.dtype, transforms=transforms)


def launch(
    kernel: Callable,
    shape: HopperShape,
    *,
    grid: dict[str, int],
    inputs: dict[str, jax.Array | None],
    outputs: dict[str, jax.ShapeDtypeStruct | None],
    scratch: dict[str, Any],
) -> dict[str, jax.Array]:
    """Runs kernel(shape, references); what is None is left out."""
    arrays = {name: x for name, x in inputs.items() if x is not None}
    results = {name: x for name, x in outputs.items() if x is not None}
    shared = {name: x for name, x in scratch.items() if x is not None}

    def body(*refs):
        named = dict(zip((*arrays, *results), refs, strict=True))
        pl.run_scoped(
            lambda **scoped: kernel(shape, HopperRefs(**named, **scoped)),
            collective_axes='wg',
            **shared,
        )

    extras = {}
    if shape.interpret:
        extras['interpret'] = plgpu.InterpretGPUParams(detect_races=True)
    # `out_shape` in JAX up to 0.10.0.
    is_new = 'out_type' in inspect.signature(plgpu.kernel).parameters
    run = plgpu.kernel(
        body,
        **{'out_type' if is_new else 'out_shape': tuple(results.values())},
        grid=tuple(grid.values()),
        grid_names=tuple(grid),
        num_threads=COMPUTE + 1,
        thread_name='wg',
        kernel_name=kernel.__name__,
        compiler_params=plgpu.CompilerParams(approx_math=True),
        **extras,
    )
    return dict(zip(results, run(*arrays.values()), strict=True))
