"""Flash attention for GPUs, in Pallas with the Triton compiler: NVIDIA's Ampere and newer.

Arrays are read in the layout they have; blocks need not divide lengths, nor the head dim be a
power of two. Key/value heads are shared by their group of query heads and never repeated. Few
queries against many keys, as in decoding, take the rows of all heads of a group together, and the
keys in parts of which each is a program; `combine` joins those.

A kernel of its own makes the gradient of a bias. It sums the gradients of logits over the batch and
over all pairs of blocks at one distance. The diagonals of that sum are added up outside. So there
are no atomic additions, and every run gives the same gradients.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from nope.attention.backend import Call, of_kernel
from nope.attention.bias import toeplitz
from nope.attention.combine import combine
from nope.attention.flash import Gradients, Operands, Rows, Rules, Wanted
from nope.attention.pallas_gpu import programs
from nope.attention.pallas_gpu.memory import has_triton
from nope.attention.pallas_gpu.programs import Blocks, Problem, Refs, RowRefs
from nope.attention.pallas_gpu.specs import (
    by_query,
    counts,
    grouped,
    specs_by_diagonal,
    specs_by_key,
    specs_by_query,
)
from nope.attention.structure import AttentionOutput
from nope.runtime import hardware
from nope.runtime.libraries import pl, triton

_MAX_HEAD_DIM = 256
_FOLDED_ROWS = 64  # at most so many rows of a group are taken together
_PROGRAMS = 256  # enough for all cores of a large GPU
_KEY_BLOCKS = 4  # of a part of the keys, at least
# By bytes of an entry, kernel, and head dim (up to 64, 128, 256). Chosen with the compiler, for
# compute capabilities 8.0, 8.6 and 9.0, and not yet by their times: the largest that fit into the
# 99 KiB of shared memory of the smaller GPUs and into registers (spilling a few dozen bytes at
# most), those of float32 when its products had no matrix units. The gradient of a bias needs square
# blocks.
_BLOCKS = {
    2: {
        'forward': (Blocks(128, 64, 4, 3), Blocks(128, 64, 8, 3), Blocks(64, 32, 8, 2)),
        'd_q': (Blocks(64, 64, 4, 2), Blocks(64, 64, 8, 2), Blocks(32, 32, 8, 2)),
        'd_kv': (Blocks(64, 64, 8, 2), Blocks(64, 64, 8, 2), Blocks(32, 32, 8, 2)),
        'd_line': (Blocks(64, 64, 4, 2), Blocks(32, 32, 4, 2), Blocks(32, 32, 4, 2)),
    },
    4: {
        'forward': (Blocks(64, 32, 8, 2), Blocks(32, 32, 4, 2), Blocks(32, 16, 8, 2)),
        'd_q': (Blocks(64, 32, 8, 2), Blocks(32, 32, 8, 2), Blocks(16, 16, 4, 2)),
        'd_kv': (Blocks(32, 32, 4, 2), Blocks(32, 32, 8, 2), Blocks(16, 16, 8, 2)),
        'd_line': (Blocks(32, 32, 4, 2), Blocks(32, 32, 4, 2), Blocks(16, 16, 4, 2)),
    },
}
# A bias by distance is one more float32 block with its addresses, and is loaded ahead like keys
# are; so is a key bias where the rows of a block are those of several heads. Float32 blocks are
# small enough for it.
_BIASED_BLOCKS = {
    'forward': (Blocks(64, 64, 4, 2), Blocks(64, 64, 4, 2), Blocks(32, 32, 4, 2)),
    'd_q': (Blocks(64, 32, 4, 2), Blocks(64, 64, 8, 2), Blocks(32, 32, 8, 2)),
    'd_kv': (Blocks(32, 32, 4, 2), Blocks(64, 64, 8, 2), Blocks(32, 32, 8, 2)),
}
# Factors are another such block.
_FACTORED_BLOCKS = {
    'forward': (Blocks(64, 64, 4, 2), Blocks(64, 64, 8, 2), Blocks(32, 32, 8, 2)),
    'd_q': (Blocks(64, 32, 4, 2), Blocks(64, 32, 8, 2), Blocks(32, 32, 8, 2)),
    'd_kv': (Blocks(32, 32, 4, 2), Blocks(64, 32, 8, 2), Blocks(32, 32, 8, 2)),
}


@dataclasses.dataclass(frozen=True)
class PallasGpu:
    """A `flash.Kernel`. interpret: run on any device, each program as XLA operations."""

    interpret: bool = False

    by_slope: ClassVar[bool] = False

    @property
    def _float32(self) -> lax.Precision | lax.DotAlgorithmPreset:
        """Three products of tf32, on tensor cores, for one of float32: what they leave out is of
        the size of float32's own rounding. XLA on a CPU has float32 itself."""
        return lax.Precision.HIGHEST if self.interpret else lax.DotAlgorithmPreset.TF32_TF32_F32_X3

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        T, N, H = operands.q_BTNH.shape[1:]
        S, K = operands.k_BSKH.shape[1:3]
        G = N // K
        if G == 1 or T * G > _FOLDED_ROWS:
            return self._forward(Problem(rules, T, S, H, group=G, float32=self._float32), operands)
        # The heads of a group as rows: [B, T, K G, H] -> [B, T G, K, H], and back.
        q_BTKGH = operands.q_BTNH.reshape(-1, T, K, G, H)
        q_ids_BT = operands.q_ids_BT
        if q_ids_BT is not None:
            q_ids_BT = jnp.repeat(q_ids_BT, G, axis=1)
        folded = operands._replace(
            q_BTNH=q_BTKGH.swapaxes(2, 3).reshape(-1, T * G, K, H), q_ids_BT=q_ids_BT
        )
        problem = Problem(rules, T * G, S, H, group=1, fold=G, float32=self._float32)
        out_BRKH, *by_row = self._forward(problem, folded)

        def by_head(x_BKR: jax.Array) -> jax.Array:
            return x_BKR.reshape(-1, K, T, G).swapaxes(2, 3).reshape(-1, N, T)

        out_BTNH = out_BRKH.reshape(-1, T, G, K, H).swapaxes(2, 3).reshape(-1, T, N, H)
        return AttentionOutput(out_BTNH, *jax.tree.map(by_head, by_row))

    def _forward(self, problem: Problem, operands: Operands) -> AttentionOutput:
        B, T, N, _ = operands.q_BTNH.shape
        dtype = operands.q_BTNH.dtype
        refs = _refs(problem, operands)
        blocks = self._blocks('forward', problem, refs)
        q_blocks, k_blocks = counts(problem, blocks)
        parts = 1  # of the keys, a power of two
        while q_blocks == 1 and B * N * parts < _PROGRAMS and k_blocks >= 2 * parts * _KEY_BLOCKS:
            parts *= 2
        spec = by_query(problem, blocks)
        part_dtype = dtype if parts == 1 else jnp.float32
        shapes = [
            jax.ShapeDtypeStruct((parts, *operands.q_BTNH.shape), part_dtype),
            *[jax.ShapeDtypeStruct((parts, B, N, T), jnp.float32)] * 3,
        ]
        out = spec(
            (None, None, blocks.queries, None, problem.padded_head_dim),
            lambda p, i, n, b: (p, b, i, n, 0),
        )
        row = spec((None, None, None, blocks.queries), lambda p, i, n, b: (p, b, n, i))
        outputs = 2 + problem.rules.entropy + problem.rules.max_logit
        result = self._call(
            functools.partial(programs.forward_kernel, problem, blocks, pl.cdiv(k_blocks, parts)),
            (parts, q_blocks, N, B),
            blocks,
            refs,
            specs_by_query(problem, blocks, refs),
            shapes[:outputs],
            [out, row, row, row][:outputs],
        )
        out, lse, *more = result
        entropy = more.pop(0) if problem.rules.entropy else None
        # Halves of the parts are joined with each other, parts being more batch.
        joined = jax.tree.map(
            lambda x: x.reshape(parts * B, *x.shape[2:]), AttentionOutput(out, lse, entropy, *more)
        )
        size = parts
        while size > 1:
            size //= 2
            halves = slice(size * B), slice(size * B, None)
            joined = combine(*(jax.tree.map(operator.itemgetter(x), joined) for x in halves))
        return joined._replace(out=joined.out.astype(dtype))

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients:
        T, N, H = operands.q_BTNH.shape[1:]
        S, K = operands.k_BSKH.shape[1:3]
        problem = Problem(rules, T, S, H, group=N // K, float32=self._float32)
        refs = _refs(problem, operands, rows)
        d_line_ND = self._d_line(problem, refs) if wanted.line else None
        d_q_BTNH = self._d_q(problem, refs)
        d_k_BSKH, d_v_BSKH, *others = self._d_kv(problem, refs, wanted)
        d_key_bias_BNS = others[0].reshape(len(refs.q), N, S) if others else None
        return Gradients(d_q_BTNH, d_k_BSKH, d_v_BSKH, d_line_ND, d_key_bias_BNS)

    def _d_q(self, problem: Problem, refs: Refs) -> jax.Array:
        B, _, N, _ = refs.q.shape
        blocks = self._blocks('d_q', problem, refs)
        specs = specs_by_query(problem, blocks, refs)
        return self._call(
            functools.partial(programs.d_q_kernel, problem, blocks),
            (1, counts(problem, blocks)[0], N, B),
            blocks,
            refs,
            specs,
            jax.ShapeDtypeStruct(refs.q.shape, refs.q.dtype),
            specs.q,
        )

    def _d_kv(self, problem: Problem, refs: Refs, wanted: Wanted) -> list[jax.Array]:
        """Of keys and values; where wanted of the key bias too, [B, K, G, S]."""
        B, S, K, _ = refs.k.shape
        blocks = self._blocks('d_kv', problem, refs)
        refs = grouped(refs, K)
        specs = specs_by_key(problem, blocks, refs)
        shape = jax.ShapeDtypeStruct(refs.k.shape, refs.k.dtype)
        shapes, outputs = [shape, shape], [specs.k, specs.k]
        if wanted.key_bias:
            G = problem.group
            shapes.append(jax.ShapeDtypeStruct((B, K, G, S), jnp.float32))
            outputs.append(pl.BlockSpec((None, None, G, blocks.keys), lambda j, n, b: (b, n, 0, j)))
        return self._call(
            functools.partial(programs.d_kv_kernel, problem, blocks),
            (counts(problem, blocks)[1], K, B),
            blocks,
            refs,
            specs,
            shapes,
            outputs,
        )

    def _d_line(self, problem: Problem, refs: Refs) -> jax.Array:
        """[N, T + S - 1]."""
        N = refs.q.shape[2]
        blocks = self._blocks('d_line', problem, refs)
        rules, side = problem.rules, blocks.keys
        q_blocks, k_blocks = counts(problem, blocks)
        # Block diagonals, those left out that a rule hides.
        first, last = 1 - k_blocks, q_blocks - 1
        if rules.offset is not None and rules.ahead is not None:
            # Distances on diagonal d end at offset + d side + side - 1.
            first = max(first, -((rules.ahead + rules.offset + side - 1) // side))
        if rules.offset is not None and rules.behind is not None:
            last = min(last, (rules.behind - rules.offset + side - 1) // side)
        last = max(first, last)
        d_line_NDTS = self._call(
            functools.partial(programs.d_line_kernel, problem, blocks, first),
            (last - first + 1, N),
            blocks,
            refs,
            specs_by_diagonal(problem, blocks, refs),
            jax.ShapeDtypeStruct((N, last - first + 1, side, side), jnp.float32),
            pl.BlockSpec((None, None, side, side), lambda d, n: (n, d, 0, 0)),
        )
        return _add_diagonals(problem, d_line_NDTS, first)

    def _blocks(self, kernel: str, problem: Problem, refs: Refs) -> Blocks:
        """No longer than the arrays."""
        itemsize, H = refs.q.dtype.itemsize, problem.head_dim
        table = _BLOCKS[itemsize]
        gathered = refs.line is not None or (refs.key_bias is not None and problem.fold > 1)
        if gathered and itemsize == 2:
            table = table | _BIASED_BLOCKS
        if refs.factors is not None and itemsize == 2:
            table = table | _FACTORED_BLOCKS
        blocks = table[kernel][(H > 64) + (H > 128)]
        if kernel == 'd_line':
            return blocks
        queries = min(blocks.queries, max(16, pl.next_power_of_2(problem.queries)))
        keys = min(blocks.keys, max(16, pl.next_power_of_2(problem.keys)))
        # On an H200 eight warps of half precision at head dims 8 and 16 gave wrong gradients of
        # keys, values and a key bias to causal calls of 40 to 64 queries; four gave the right ones.
        narrow = kernel == 'd_kv' and refs.q.dtype.itemsize == 2 and problem.head_dim <= 16
        warps = 4 if queries <= 16 or narrow else blocks.warps
        return Blocks(queries, keys, warps, blocks.stages)

    def _call(
        self,
        kernel: functools.partial,
        grid: tuple[int, ...],
        blocks: Blocks,
        refs: Refs,
        specs: Refs,
        out_shape: Any,
        out_specs: Any,
    ) -> Any:
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=(specs,),
            out_shape=out_shape,
            out_specs=out_specs,
            interpret=self.interpret,
            # Their type is what selects Triton among the compilers for GPUs.
            compiler_params=triton.CompilerParams(num_warps=blocks.warps, num_stages=blocks.stages),
            name=kernel.func.__name__,
        )(refs)


def _refs(problem: Problem, operands: Operands, rows: Rows | None = None) -> Refs:
    """The arrays of a call as the kernels name them."""
    line, factors = (
        None if x is None else x.reshape(-1, problem.fold, x.shape[1])
        for x in (operands.line_ND, operands.factors_ND)
    )
    key_bias = operands.key_bias_BNS
    if key_bias is not None:
        B, _, S = key_bias.shape
        key_bias = key_bias.reshape(B, -1, problem.fold, S)
    return Refs(
        q=operands.q_BTNH,
        k=operands.k_BSKH,
        v=operands.v_BSKH,
        line=line,
        factors=factors,
        key_bias=key_bias,
        q_ids=operands.q_ids_BT,
        kv_ids=operands.kv_ids_BS,
        offset=operands.offset.reshape(1) if problem.rules.offset is None else None,
        rows=None if rows is None else RowRefs(*rows),
    )


def _add_diagonals(problem: Problem, d_line_NDTS: jax.Array, first: int) -> jax.Array:
    """The gradient of a line, from sums over block diagonals first, first + 1, ..."""
    N, D, side, _ = d_line_NDTS.shape
    turn = jax.linear_transpose(
        lambda line: toeplitz(line, side), jax.ShapeDtypeStruct((N, D, 2 * side - 1), jnp.float32)
    )
    (sums_NDE,) = turn(d_line_NDTS)
    # Of block diagonal d, entry e is distance d side + e - (side - 1): two stretches, of which
    # the second one is the first of block diagonal d + 1.
    left_NDL, right_NDL = sums_NDE[..., :side], sums_NDE[..., side:]
    right_NDL = jnp.pad(right_NDL, ((0, 0), (1, 0), (0, 1)))
    line_NE = (jnp.pad(left_NDL, ((0, 0), (0, 1), (0, 0))) + right_NDL).reshape(N, -1)
    # Entry 0 of the line is distance 1 - S.
    before = first * side - (side - 1) - (1 - problem.keys)
    size = problem.queries + problem.keys - 1
    return lax.pad(
        line_NE, jnp.float32(0), ((0, 0, 0), (before, size - before - line_NE.shape[1], 0))
    )


def unsupported_anywhere(call: Call) -> str | None:
    """Reason for calls that the kernels support on no device, or None."""
    if not has_triton():
        return f'JAX {jax.__version__} has no Triton compiler for Pallas'
    if call.head_dim > _MAX_HEAD_DIM:
        return f'the head dim is {call.head_dim}, its blocks fit up to {_MAX_HEAD_DIM}'
    return None


def _unsupported(call: Call) -> str | None:
    if call.platform != 'gpu':
        return f'it runs on GPUs, this is a {call.platform}'
    return hardware.no_ampere(call.device_kind) or unsupported_anywhere(call)


BACKEND = of_kernel('pallas_gpu', PallasGpu(), _unsupported)
