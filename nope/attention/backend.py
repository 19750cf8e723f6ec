"""Interface of attention backends: a name, a function, and the reason why it cannot run a call."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax

from nope.attention.bias import Bias
from nope.attention.flash import Kernel, flash_attention
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime.platform import target_device


@dataclasses.dataclass(frozen=True)
class Call:
    """Static description of an attention call and its target device, without arrays.

    platform: 'cpu', 'gpu' or 'tpu'. device_kind: as JAX names it, for example 'NVIDIA H200'.
    queries, keys: T and S. offset: whether the mask has one; 0 for T = S counts as none. bias: name
    of its class, or None. key_bias: whether there is one. lse: whether the log-sum-exp is read.
    max_logit: whether the largest logits are.
    """

    platform: str
    device_kind: str
    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    causal: bool
    window: int | None
    segmented: bool
    offset: bool
    bias: str | None
    entropy: bool
    key_bias: bool = False
    lse: bool = True
    max_logit: bool = False


def _never(call: Call) -> str | None:
    return None


@dataclasses.dataclass(frozen=True)
class Backend:
    """Attention backend.

    attend: takes q, k, v and, by name, mask, bias, key_bias_BNS, entropy and max_logit, as checked
        by `attention`.
    unsupported: why the backend cannot run a call, a phrase that completes "NAME cannot: ..."; or
        None where it can.
    outdone: why it runs a call but is not to be chosen for it, being slow or imprecise there; or
        None.
    kernel: of the backends that are flash kernels, which a sequence split over devices needs.
    """

    name: str
    attend: Callable[..., AttentionOutput]
    unsupported: Callable[[Call], str | None] = _never
    kernel: Kernel | None = None
    outdone: Callable[[Call], str | None] = _never

    def passed_over(self, call: Call) -> str | None:
        """Reason against choosing the backend by itself for a call, or None."""
        reason = self.unsupported(call)
        return self.outdone(call) if reason is None else reason


def of_kernel(
    name: str,
    kernel: Kernel,
    unsupported: Callable[[Call], str | None] = _never,
    outdone: Callable[[Call], str | None] = _never,
) -> Backend:
    """Backend made of a flash kernel alone."""
    attend = functools.partial(flash_attention, kernel)
    return Backend(name, attend, unsupported, kernel, outdone)


def describe(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    mask: Mask,
    bias: Bias | None,
    entropy: bool,
    *,
    max_logit: bool = False,
    key_bias: bool = False,
    lse: bool = True,
) -> Call:
    """`Call` of these arguments on the device of the current mesh, or else JAX's default one."""
    B, T, N, H = q_BTNH.shape
    S, K = k_BSKH.shape[1:3]
    offset = mask.offset is not None
    if isinstance(mask.offset, int):
        offset = mask.offset != 0 or T != S
    platform, kind = target_device()
    return Call(
        platform, kind, B, T, S, N, K, H, q_BTNH.dtype.name, mask.causal, mask.window,
        mask.segmented, offset, None if bias is None else type(bias).__name__, entropy, key_bias,
        lse, max_logit,
    )  # fmt: skip
