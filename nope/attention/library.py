"""Plain attention by vendor libraries: cuDNN, splash attention, XLA.

    GPU   cuDNN's fused attention
    TPU   splash attention
    CPU   XLA's dense attention, in float32 and O(T S) memory

They compute `out` and its gradients. The log-sum-exp, which they return rounded, without a gradient
or not at all, comes from `chunked`; a program in which nothing uses it does not compute it. The
entropy is H_i = lse_i - sum_j a_ij s_ij. With the keys as values an attention call gives sum_j a_ij
k_j. Its product with q_i is the sum. The two terms are as large as the logits and are rounded
apart, so it is offered in full float32 only, where logits of order ten leave it five digits. GPUs
and TPUs have no such products here; their own kernels compute the entropy.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from nope.attention.backend import Backend, Call
from nope.attention.bias import Bias
from nope.attention.chunked import chunked_attention
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime import hardware
from nope.runtime.platform import target_device

_SPLASH_BLOCK = 512
_SPLASH_UNIT = 128
# It goes through all pairs of blocks while it is traced: 2.5 s at 32,768 tokens, 39 s at 131,072.
_SPLASH_LONG = 16_384
# cuDNN's attention has head dims to 256 on Hopper, and in newer versions of JAX on Blackwell.
_WIDE = re.compile(r'\bG?[HB]\d{3}\b' if jax.__version_info__ >= (0, 9, 2) else r'\bG?H\d{3}\b')


def library_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool,
    max_logit: bool = False,
) -> AttentionOutput:
    """softmax(q k^T) v with its lse and entropy; see `nope.attention.api.attention`."""
    attend = functools.partial(_BY_PLATFORM[target_device()[0]], mask=mask)
    second = chunked_attention(
        q_BTNH, k_BSKH, v_BSKH, mask=mask, bias=None, entropy=False, max_logit=max_logit
    )
    lse_BNT = second.lse
    entropy_BNT = None
    if entropy:
        q32_BTNH, k32_BSKH = q_BTNH.astype(jnp.float32), k_BSKH.astype(jnp.float32)
        mean_key_BTNH = attend(q32_BTNH, k32_BSKH, k32_BSKH)
        entropy_BNT = lse_BNT - jnp.einsum(
            'BTNH,BTNH->BNT', q32_BTNH, mean_key_BTNH, precision='highest'
        )
    return AttentionOutput(attend(q_BTNH, k_BSKH, v_BSKH), lse_BNT, entropy_BNT, second.max_logit)


def _fused(q_BTNH, k_BSKH, v_BSKH, *, mask: Mask, implementation: Any) -> jax.Array:
    window = None
    if mask.window is not None:
        window = (mask.window - 1, 0 if mask.causal else mask.window - 1)
    return jax.nn.dot_product_attention(
        q_BTNH, k_BSKH, v_BSKH, scale=1.0, is_causal=mask.causal, local_window_size=window,
        implementation=implementation,
    )  # fmt: skip


def _dense(q_BTNH, k_BSKH, v_BSKH, *, mask: Mask) -> jax.Array:
    precise = (x.astype(jnp.float32) for x in (q_BTNH, k_BSKH, v_BSKH))
    with jax.default_matmul_precision('highest'):
        return _fused(*precise, mask=mask, implementation='xla').astype(q_BTNH.dtype)


def splash_attention(
    q_BTNH: jax.Array, k_BSKH: jax.Array, v_BSKH: jax.Array, *, mask: Mask, interpret: bool = False
) -> jax.Array:
    """`out` by splash attention."""
    from jax.experimental.pallas.ops.tpu import splash_attention as splash

    kernels, masks = splash.splash_attention_kernel, splash.splash_attention_mask

    (_, T, N, _), S = q_BTNH.shape, k_BSKH.shape[1]
    rule: Any = masks.FullMask((T, S))
    if mask.window is not None:
        behind = mask.window - 1
        rule = masks.LocalMask((T, S), (behind, 0 if mask.causal else behind), offset=0)
    elif mask.causal:
        rule = masks.CausalMask((T, S))
    q_block, k_block = (_splash_block(length) for length in (T, S))
    blocks = kernels.BlockSizes(
        block_q=q_block, block_kv=k_block,
        block_q_dkv=q_block, block_kv_dkv=k_block, block_q_dq=q_block, block_kv_dq=k_block,
    )  # fmt: skip
    kernel = kernels.make_splash_mha_single_device(
        masks.MultiHeadMask([rule] * N), block_sizes=blocks, interpret=interpret
    )
    heads_first = (x.swapaxes(1, 2) for x in (q_BTNH, k_BSKH, v_BSKH))
    return jax.vmap(kernel)(*heads_first).swapaxes(1, 2)


def _splash_block(length: int) -> int:
    """The largest power of two times the unit that divides `length`, at most `_SPLASH_BLOCK`."""
    block = _SPLASH_UNIT
    while block < _SPLASH_BLOCK and length % (2 * block) == 0:
        block *= 2
    return block


_BY_PLATFORM: dict[str, Callable[..., jax.Array]] = {
    'cpu': _dense,
    'gpu': functools.partial(_fused, implementation='cudnn'),
    'tpu': splash_attention,
}


def _unsupported(call: Call) -> str | None:
    if call.platform not in _BY_PLATFORM:
        return f'there is none for {call.platform}'
    if call.bias is not None:
        return 'a bias would have to be a dense array'
    if call.key_bias:
        return 'key_bias_BNS would have to be a dense array'
    if call.segmented:
        return 'segment ids would have to be a dense mask'
    if call.offset:
        return 'its queries begin at position 0'
    if call.window is not None and not call.causal:
        return 'its windows are causal'
    if call.entropy and call.platform != 'cpu':
        return 'it has no float32 products, which an entropy from its output would need'
    if call.platform == 'tpu' and call.dtype == 'float16':
        return 'TPUs have no float16'
    if call.platform == 'tpu' and (call.queries % _SPLASH_UNIT or call.keys % _SPLASH_UNIT):
        return f'T={call.queries} and S={call.keys} are not both multiples of {_SPLASH_UNIT}'
    if call.platform != 'gpu':
        return None
    if reason := hardware.no_ampere(call.device_kind):
        return f'cuDNN has no fused attention here: {reason}'
    if call.dtype == 'float32':
        return 'cuDNN has no float32 attention'
    if 1 in (call.queries, call.keys):
        return 'some versions of cuDNN refuse, or fail on, a single query or key'
    if call.queries % 2 or call.keys % 2:
        return f'JAX refuses gradients of cuDNN at odd lengths, as T={call.queries}, S={call.keys}'
    most = 256 if _WIDE.search(call.device_kind) else 128
    if call.head_dim > most or call.head_dim % 8:
        return f'head dim {call.head_dim} is no multiple of 8 up to {most}'
    if not _gpu_is_here():
        return 'cuDNN plans its programs on the GPU, and this process has none'
    return None


def _gpu_is_here() -> bool:
    return jax.default_backend() == 'gpu'


def _outdone(call: Call) -> str | None:
    if call.lse:
        return 'its log-sum-exp would be a second pass'
    if call.max_logit:
        return 'the largest logits would be a second pass'
    if call.platform != 'tpu':
        return None
    if call.dtype == 'float32':
        return 'splash attention does not say how it rounds products of float32'
    if max(call.queries, call.keys) > _SPLASH_LONG:
        return f'splash attention takes seconds to lay out masks of more than {_SPLASH_LONG:,} keys'
    return None


BACKEND = Backend('library', library_attention, _unsupported, outdone=_outdone)
