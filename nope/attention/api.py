"""Attention API: input checks and dispatch to an implementation."""

from __future__ import annotations

import functools
import logging

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32

from nope.attention import library, mosaic_gpu, pallas_gpu, pallas_tpu
from nope.attention.backend import Backend, Call, describe
from nope.attention.bias import Bias
from nope.attention.chunked import Chunked, chunked_attention
from nope.attention.reference import reference_attention
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime import hardware

BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        Backend('reference', reference_attention),
        Backend('chunked', chunked_attention, kernel=Chunked()),
        library.BACKEND,
        pallas_tpu.BACKEND,
        pallas_gpu.BACKEND,
        mosaic_gpu.BACKEND,
    )
}
# What the library tries by itself, the fastest first. README.md has the reasons.
PREFERRED = {
    'tpu': ('library', 'pallas_tpu', 'chunked'),
    'gpu': ('library', 'mosaic_gpu', 'pallas_gpu', 'chunked'),
    'cpu': ('chunked',),
}
_LOG = logging.getLogger(__name__)
_DTYPES = ('float32', 'bfloat16', 'float16')


def attention(
    q_BTNH: Float[Array, 'B T N H'],
    k_BSKH: Float[Array, 'B S K H'],
    v_BSKH: Float[Array, 'B S K H'],
    *,
    mask: Mask = Mask(),  # noqa: B008 (frozen, holds no arrays)
    bias: Bias | None = None,
    key_bias_BNS: Float32[Array, 'B N S'] | None = None,
    entropy: bool = False,
    max_logit: bool = False,
    lse: bool = True,
    implementation: str | None = None,
) -> AttentionOutput:
    """Softmax attention with its log-sum-exp and, where asked for, its entropy.

    With logits s_ij = q_i . k_j + bias(i - j) + key_bias_j, or a(i - j) q_i . k_j + ... where the
    bias multiplies too, lse_i = ln sum_j e^s_ij and weights
    a_ij = exp(s_ij - lse_i):

        out_i = sum_j a_ij v_j        H_i = -sum_j a_ij ln a_ij = lse_i - sum_j a_ij s_ij

    There is no scale here: lambda / sqrt(H) is multiplied into q before the call.
    Differentiable in q, k, v, the key bias and the parameters of T5's, KERPLE's and Sandwich's bias
    through all three outputs.

    The forgetting transformer (Lin et al., 2025, arXiv:2503.02130) needs the key bias. Its logits
    are q_i . k_j / sqrt(H) + c_i - c_j with c the running sum of log forget gates. c_i cancels in
    the softmax, so the key bias is -c_j and lse lacks c_i. A logit near 5,000 carries a float32
    rounding error of 2e-4.

    Args:
      q_BTNH: queries [B, T, N, H], already scaled; float32, bfloat16 or float16.
      k_BSKH, v_BSKH: keys and values [B, S, K, H], the dtype of q; K divides N and query head
        n reads head n // (N / K).
      mask: who sees whom; causal by default.
      bias: what is added to the logits by distance (a class of `nope.attention.bias`), or None.
      key_bias_BNS: what is added to the logits by query head and key, float32 [B, N, S], in size
        below 1e28, or None.
      entropy: whether to compute the entropy too.
      max_logit: whether to return the largest logit of each row too, which grows without bound
        where training becomes unstable. No gradient passes it.
      lse: whether the log-sum-exp will be read. It is returned in any case; where it is not, the
        library may choose cuDNN or splash attention, whose log-sum-exp is a second pass (left out
        under `jit` where nothing reads it).
      implementation: a name of `BACKENDS`, or None to let the library choose. One that is named
        runs or raises.

    Returns:
      AttentionOutput. Softmax, sums, lse and entropy are float32 whatever the input dtype.

    Raises:
      ValueError: shapes, dtypes, mask, bias or key bias do not fit together, or there is no
        such implementation, or it cannot run this call.
    """
    check(q_BTNH, k_BSKH, v_BSKH, mask, bias, key_bias_BNS)
    call = describe(
        q_BTNH, k_BSKH, mask, bias, entropy,
        max_logit=max_logit, key_bias=key_bias_BNS is not None, lse=lse,
    )  # fmt: skip
    return choose(call, implementation).attend(
        q_BTNH, k_BSKH, v_BSKH,
        mask=mask, bias=bias, key_bias_BNS=key_bias_BNS, entropy=entropy, max_logit=max_logit,
    )  # fmt: skip


class Unsupported(ValueError):
    """A call that the backend that was named cannot run; `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'implementation={name!r} cannot: {reason}')
        self.reason = reason


def choose(call: Call, implementation: str | None) -> Backend:
    """The backend of that name, or for None the fastest one; `Unsupported` where it cannot."""
    if implementation is None:
        return _fastest(call)
    if implementation not in BACKENDS:
        raise ValueError(
            f'implementation={implementation!r} is unknown; accepted: None, '
            + ', '.join(repr(name) for name in BACKENDS)
        )
    reason = BACKENDS[implementation].unsupported(call)
    if reason is not None:
        raise Unsupported(implementation, reason)
    return BACKENDS[implementation]


@functools.cache
def _fastest(call: Call) -> Backend:
    """The fastest backend that runs the call; 'chunked' runs them all."""
    passed_over: list[str] = []
    for name in PREFERRED.get(call.platform, ('chunked',)):
        reason = BACKENDS[name].passed_over(call)
        if reason is None:
            _say_chosen(name, call.platform, call.device_kind, call.dtype, tuple(passed_over))
            return BACKENDS[name]
        passed_over.append(f'{name}: {reason}')
    raise AssertionError(f'no backend for {call}')


@functools.cache
def _say_chosen(
    name: str, platform: str, kind: str, dtype: str, passed_over: tuple[str, ...]
) -> None:
    """Logs a choice, once; a warning where an accelerator has no kernel for the call."""
    device = kind if platform in kind.lower() else f'{platform} ({kind})'
    reasons = f', not {"; not ".join(passed_over)}' if passed_over else ''
    level = logging.INFO if platform == 'cpu' or name != 'chunked' else logging.WARNING
    _LOG.log(level, 'attention: implementation %r on %s%s', name, device, reasons)
    sheet = hardware.known(kind)
    if dtype == 'float32' and sheet is not None and sheet.float32 is not None:
        # Three products of tf32, which has half the rate of bfloat16, or none on tensor cores.
        in_parts = name == 'pallas_gpu'
        _LOG.info(
            'attention: float32 %s on %s: at most %.0f of %.0f TFLOP/s, which '
            "model.dtype='bfloat16' has",
            'takes three products of tf32' if in_parts else 'has no tensor cores',
            device,
            (sheet.flops / 6 if in_parts else sheet.float32) / 1e12,
            sheet.flops / 1e12,
        )


def check(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None,
    queries: int | None = None,
) -> None:
    """Raises ValueError where the arguments of `attention` do not fit together.

    queries: how many the mask is for, where q_BTNH has chosen ones of them; None for its T.
    """
    _check_arrays(q_BTNH, k_BSKH, v_BSKH)
    queries = q_BTNH.shape[1] if queries is None else queries
    if not isinstance(mask, Mask):
        raise ValueError(f'mask is {type(mask).__name__}; accepted: a Mask, as Mask(causal=False)')
    mask.check(q_BTNH.shape[0], queries, k_BSKH.shape[1])
    if bias is not None:
        if not isinstance(bias, Bias):
            raise ValueError(f'bias is {type(bias).__name__}; accepted: a nope.attention.bias.Bias')
        bias.check()
        if bias.heads != q_BTNH.shape[2]:
            raise ValueError(f'bias is for {bias.heads} heads, q_BTNH has {q_BTNH.shape[2]}')
    if key_bias_BNS is not None:
        wanted = q_BTNH.shape[0], q_BTNH.shape[2], k_BSKH.shape[1]
        if jnp.shape(key_bias_BNS) != wanted:
            raise ValueError(
                f'key_bias_BNS has shape {jnp.shape(key_bias_BNS)}, expected {wanted}: batch, '
                'query heads, keys'
            )
        if jnp.result_type(key_bias_BNS) != jnp.float32:
            raise ValueError(
                f'key_bias_BNS has dtype {jnp.result_type(key_bias_BNS)}, accepted: float32'
            )


def _check_arrays(q_BTNH: jax.Array, k_BSKH: jax.Array, v_BSKH: jax.Array) -> None:
    arrays = {'q_BTNH': q_BTNH, 'k_BSKH': k_BSKH, 'v_BSKH': v_BSKH}
    for name, array in arrays.items():
        if jnp.ndim(array) != 4:
            raise ValueError(f'{name} has shape {jnp.shape(array)}, expected four axes')
        if 0 in jnp.shape(array):
            raise ValueError(f'{name} has shape {jnp.shape(array)}, expected no axis of length 0')
        if array.dtype.name not in _DTYPES:
            raise ValueError(f'{name} has dtype {array.dtype}, accepted: {", ".join(_DTYPES)}')
        if array.dtype != q_BTNH.dtype:
            raise ValueError(f'{name} has dtype {array.dtype}, q_BTNH has {q_BTNH.dtype}')
    if k_BSKH.shape != v_BSKH.shape:
        raise ValueError(f'k_BSKH has shape {k_BSKH.shape}, v_BSKH has {v_BSKH.shape}')
    (B, _, N, H), (B_kv, _, K, H_kv) = q_BTNH.shape, k_BSKH.shape
    if B_kv != B:
        raise ValueError(f'q_BTNH has batch size {B}, k_BSKH and v_BSKH have {B_kv}')
    if H_kv != H:
        raise ValueError(f'q_BTNH has head dim {H}, k_BSKH and v_BSKH have {H_kv}')
    if N % K:
        raise ValueError(f'N={N} query heads are not divisible by K={K} key/value heads')
