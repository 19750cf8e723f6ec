"""Attention on NVIDIA Hopper GPUs: Pallas Mosaic GPU kernels, forward and backward.

The kernels take head dims of 64 and 128 and lengths that are multiples of a tile; here arrays are
padded to them and cut again. Keys and values are read as they are, [B, S, K, H]: no head is
repeated and nothing is transposed.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from nope.attention.backend import Call, of_kernel
from nope.attention.bias import AlibiBias
from nope.attention.flash import Gradients, Operands, Rows, Rules, Wanted
from nope.attention.mosaic_gpu.arrays import Arrays, pad, padded
from nope.attention.structure import AttentionOutput

# The kernels' modules are imported where they are needed: theirs of JAX costs half a second, and
# may not be there.
_HEAD_DIMS = (64, 128)
_TILE = 128
# Keys of a step of a kernel (in the gradients of k and v: queries). By registers: a step's logits
# take 64 of a thread at 128 keys, as many as the sums of out at a head dim of 128. In the gradients
# logits and their gradients are there at the same time, and for k and v two sums and the numbers by
# query.
_STEP, _STEP_OF_KEY_GRADIENTS = 128, 64
# Up to so many, of all queries that share a key, `pallas_gpu` takes them together and divides the
# keys; here each head is a program of its own, which reads all keys.
_FEW_ROWS = 64


@dataclasses.dataclass(frozen=True)
class MosaicGpu:
    """interpret: run the kernels in JAX's interpreter on any device, with their threads, copies and
    barriers. Races for memory are an error there."""

    by_slope: ClassVar[bool] = True

    interpret: bool = False

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        """Forward pass; see `nope.attention.flash.Kernel`."""
        from nope.attention.mosaic_gpu.forward import forward

        _, T, _, H = operands.q_BTNH.shape
        shape, arrays = self._padded(rules, operands)
        out_BTNH, *by_row = forward(shape, arrays)
        lse_BNT, entropy_BNT, max_BNT = (None if x is None else x[..., :T] for x in by_row)
        assert lse_BNT is not None
        if operands.slopes_N is not None:
            left_out = _left_out(operands.slopes_N, T)
            lse_BNT -= left_out
            max_BNT = None if max_BNT is None else max_BNT - left_out
        return AttentionOutput(out_BTNH[:, :T, :, :H], lse_BNT, entropy_BNT, max_BNT)

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients:
        """Backward pass; see `nope.attention.flash.Kernel`."""
        from nope.attention.mosaic_gpu.backward import stack_rows
        from nope.attention.mosaic_gpu.key_gradients import key_gradients
        from nope.attention.mosaic_gpu.query_gradient import query_gradient

        (_, T, _, H), S = operands.q_BTNH.shape, operands.k_BSKH.shape[1]
        shape, arrays = self._padded(rules, operands)
        d_out_BTNH = pad(rows.d_out_BTNH, {1: shape.queries, 3: shape.head_dim})
        if operands.slopes_N is not None:
            rows = rows._replace(lse_BNT=rows.lse_BNT + _left_out(operands.slopes_N, T))
        rows_BNRT = stack_rows(rows, shape.queries, biased=arrays.biased)
        d_q_BTNH = query_gradient(shape, arrays, d_out_BTNH, rows_BNRT)
        shape = dataclasses.replace(shape, step=_STEP_OF_KEY_GRADIENTS)
        by_key = key_gradients(shape, arrays, d_out_BTNH, rows_BNRT, wanted=wanted)
        return Gradients(
            d_q_BTNH[:, :T, :, :H],
            by_key['d_k'][:, :S, :, :H],
            by_key['d_v'][:, :S, :, :H],
            d_key_bias_BNS=by_key['d_key_bias'][..., :S] if wanted.key_bias else None,
        )

    def _padded(self, rules: Rules, operands: Operands) -> tuple[Any, Arrays]:
        """The `HopperShape` of a kernel, and the arrays of all."""
        from nope.attention.mosaic_gpu.parts import HopperShape

        if operands.line_ND is not None:
            raise NotImplementedError('the Mosaic GPU kernels have no bias by distance but ALiBi')
        if operands.slopes_N is not None and not rules.causal:
            raise NotImplementedError('the Mosaic GPU kernels have ALiBi under a causal rule only')
        B, T, N, H = operands.q_BTNH.shape
        S, K = operands.k_BSKH.shape[1:3]
        queries, keys = -(-T // _TILE) * _TILE, -(-S // _TILE) * _TILE
        head_dim = next(size for size in _HEAD_DIMS if size >= H)
        shape = HopperShape(
            _STEP, rules, self.interpret, B, queries, keys, S, N, K, head_dim,
            operands.q_BTNH.dtype, operands.q_ids_BT is not None,
        )  # fmt: skip
        static = rules.offset is not None
        return shape, padded(operands, queries, keys, head_dim, static_offset=static)


def _left_out(slopes_N: jax.Array, queries: int) -> jax.Array:
    """[N, T]: by what the logits of ALiBi are larger in the kernels, which measure the distance of
    a key from the first query of a tile."""
    return slopes_N[:, None] * (jnp.arange(queries) % _TILE).astype(jnp.float32)


def _unsupported(call: Call) -> str | None:
    if call.platform != 'gpu' or not re.search(r'\bG?H\d', call.device_kind):
        return f'the device is {call.device_kind} and not a Hopper GPU (H100, H200 and their kin)'
    version = _cuda_version()
    # JAX refuses its own causal kernel there up to 12.9.0, but no runtime tells 12.9.1 from it.
    if call.causal and 12080 <= version < 13000:
        return (
            f'ptxas of CUDA {version} may miscompile causal masks; accepted: before 12.8, or CUDA '
            '13 (the extra cuda13)'
        )
    return unsupported_anywhere(call)


def _outdone(call: Call) -> str | None:
    rows = call.queries * (call.heads // call.kv_heads)
    if rows <= _FEW_ROWS:
        return f'{rows} rows to a key head leave most of its {_TILE} a program empty'
    return None


def unsupported_anywhere(call: Call) -> str | None:
    """Reason for calls that the kernels support on no device, or None."""
    if call.dtype not in ('bfloat16', 'float16'):
        return (
            f'the matrix units (wgmma) multiply bfloat16 and float16, the inputs are {call.dtype}'
        )
    if call.head_dim > _HEAD_DIMS[-1]:
        return (
            f'a head dim of {call.head_dim} is more than the registers hold; accepted: up to '
            f'{_HEAD_DIMS[-1]}'
        )
    if call.bias not in (None, AlibiBias.__name__):
        return (
            f'its kernels have ALiBi and no other bias by distance, and this call has {call.bias}'
        )
    if call.bias is not None and not call.causal:
        return f'its kernels have {call.bias} where no query sees later keys, and here they do'
    return _missing()


@functools.cache
def _missing() -> str | None:
    try:
        language = importlib.import_module('jax.experimental.pallas.mosaic_gpu')
    except ImportError as error:
        return f'JAX {jax.__version__} has no Mosaic GPU here ({error})'
    if not hasattr(language, 'wgmma_accumulator_load'):
        return (
            f'the Mosaic GPU of JAX {jax.__version__} waits for all products at once; accepted: '
            '0.9.2 and later'
        )
    return None


@functools.cache
def _cuda_version() -> int:
    """12090 for CUDA 12.9; 0 where nobody can tell."""
    try:
        versions = importlib.import_module('jax._src.lib').cuda_versions
        return versions.cuda_runtime_get_version()  # None for a JAX without CUDA
    except (ImportError, AttributeError, RuntimeError):
        return 0


BACKEND = of_kernel('mosaic_gpu', MosaicGpu(), _unsupported, outdone=_outdone)
