"""JAX's own attention kernel for Hopper GPUs, a control for the project's of the same language.

It has causal attention forward, in float16 and whole blocks, and no gradient of it.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from nope.attention.api import BACKENDS
from nope.attention.backend import Call
from nope.attention.cases import Inputs, Trial

NAME = 'jax_hopper'
PASS = 'forward'
BLOCK_Q, BLOCK_KV, STEPS = 64, 128, 2  # queries of one of two warpgroups, keys, buffers
HEAD_DIMS = (64, 128)


def supports(case: Trial, kind: str, call: Call) -> bool:
    """Whether it has that pass of the case, on the device of the call: where the project's own
    kernels of this kind run."""
    plain = kind == PASS and case.plain and case.causal and case.head_dim in HEAD_DIMS
    whole = case.queries == case.keys and case.keys % max(2 * BLOCK_Q, BLOCK_KV) == 0
    return plain and whole and BACKENDS['mosaic_gpu'].unsupported(call) is None


def inputs_of(inputs: Inputs) -> Inputs:
    """The arrays in the precision that it takes."""

    def half(x: jax.Array) -> jax.Array:
        if isinstance(x, jax.ShapeDtypeStruct):
            return x.update(dtype=jnp.dtype('float16'))
        return x.astype(jnp.float16)

    return dataclasses.replace(
        inputs, q_BTNH=half(inputs.q_BTNH), k_BSKH=half(inputs.k_BSKH), v_BSKH=half(inputs.v_BSKH)
    )


def attend(inputs: Inputs) -> jax.Array:
    """Attention [B, T, N, H]; the queries carry the scale, as everywhere here."""
    from jax.experimental.pallas.ops.gpu import attention_mgpu

    config = attention_mgpu.TuningConfig(
        block_q=BLOCK_Q, block_kv=BLOCK_KV, max_concurrent_steps=STEPS, causal=True
    )
    return attention_mgpu.attention(inputs.q_BTNH, inputs.k_BSKH, inputs.v_BSKH, config)
