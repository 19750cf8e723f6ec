"""Launch of the TPU kernels of the backward pass: one, or two.

Both forms visit the same pairs of blocks. One kernel has five products a pair (the logits, dP, dV,
dK and dQ), two have seven, because both compute the logits and dP. It goes by query, as the forward
pass, and keeps the sums of all dK and dV of a key/value head in vector memory while the heads of
its group and their queries pass. So it moves no more bytes than two kernels, and adds in one order.

The kernel keeps 2 S H float32 and their rounded copy, with H in lanes of 128. The bound is 24 MiB:
16,384 keys in half precision with head dims to 128. A v5p has 64 MiB, v5e and v6e have 128, older
chips 16. Beyond it dQ would leave the chip as one float32 array a key block: 32 arrays of 512 MiB
at 32,768 keys and 32 heads. There, two kernels, and so with fewer than 128 queries, which have
little to compute twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.attention.flash import Wanted
from nope.attention.pallas_tpu.arrays import Arrays, Shape
from nope.attention.pallas_tpu.launch import group_spec, k_spec, kept_spec, q_spec, run
from nope.attention.pallas_tpu.programs import (
    gradient_kernel,
    key_gradient_kernel,
    query_gradient_kernel,
)
from nope.runtime.libraries import pl, pltpu


class Launched(NamedTuple):
    """Outputs of the kernels. line, key_bias: one array, or none where it is not wanted."""

    q_BKRH: jax.Array
    k_BKSH: jax.Array
    v_BKSH: jax.Array
    line: list[jax.Array]
    key_bias: list[jax.Array]


class _Output(NamedTuple):
    array: jax.ShapeDtypeStruct
    spec: pl.BlockSpec


def launch_backward(shape: Shape, arrays: Arrays, wanted: Wanted) -> Launched:
    """The gradients of `arrays`, those of line and key bias as wanted."""
    if shape.fused:
        keys = shape.plan.padded_keys
        line = _line(shape, wanted)
        d_kv = _Output(_like(arrays.k_BKSH), kept_spec(shape, (None, None, keys, shape.head_dim)))
        sums = pltpu.VMEM((keys, shape.head_dim), jnp.float32)
        scratch, key_bias = [_by_row(shape), sums, sums], list[_Output]()
        if wanted.key_bias:
            spec = kept_spec(shape, (None, None, shape.groups, keys))
            key_bias.append(_Output(_by_group(shape), spec))
            scratch.append(pltpu.VMEM((shape.groups, keys), jnp.float32))
        d_q, d_k, d_v, *others = _launch(
            shape,
            gradient_kernel,
            arrays,
            [_Output(_like(arrays.q_BKRH), q_spec(shape)), d_kv, d_kv, *key_bias, *line],
            scratch,
            by_key=False,
        )
        return Launched(d_q, d_k, d_v, others[len(key_bias) :], others[: len(key_bias)])
    by_query = _Output(_like(arrays.q_BKRH), q_spec(shape)), *_line(shape, wanted)
    d_q, *d_line = _launch(
        shape, query_gradient_kernel, arrays, by_query, [_by_row(shape)], by_key=False
    )
    d_kv = _Output(_like(arrays.k_BKSH), k_spec(shape, by_key=True))
    sums = pltpu.VMEM((shape.plan.k_block, shape.head_dim), jnp.float32)
    outputs, scratch = [d_kv, d_kv], [sums, sums]
    if wanted.key_bias:
        outputs.append(_Output(_by_group(shape), group_spec(shape)))
        scratch.append(pltpu.VMEM((shape.groups, shape.plan.k_block), jnp.float32))
    d_k, d_v, *d_key_bias = _launch(
        shape, key_gradient_kernel, arrays, outputs, scratch, by_key=True
    )
    return Launched(d_q, d_k, d_v, d_line, d_key_bias)


def _launch(
    shape: Shape, kernel: Any, arrays: Arrays, outputs: Sequence[_Output], scratch: list[Any], *,
    by_key: bool,
) -> list[jax.Array]:  # fmt: skip
    arrays_out, specs = zip(*outputs, strict=True)
    return run(
        shape, kernel, arrays, by_key=by_key,
        outputs=list(arrays_out), out_specs=list(specs), scratch=scratch,
    )  # fmt: skip


def _like(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _by_row(shape: Shape) -> Any:
    return pltpu.VMEM((shape.head_dim, shape.row_block), jnp.float32)


def _by_group(shape: Shape) -> jax.ShapeDtypeStruct:
    by_group = shape.batch, shape.kv_heads, shape.groups, shape.plan.padded_keys
    return jax.ShapeDtypeStruct(by_group, jnp.float32)


def _line(shape: Shape, wanted: Wanted) -> list[_Output]:
    if not wanted.line:
        return []
    line = jax.ShapeDtypeStruct((*shape.grid_heads, 1, shape.line), jnp.float32)
    spec = pl.BlockSpec((None, None, 1, shape.line), lambda b, n, *_: (b, n, 0, 0))
    return [_Output(line, spec)]
