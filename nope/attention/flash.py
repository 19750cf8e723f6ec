"""Flash attention: arguments of the kernels, and the one derivative rule that they share.

A kernel computes attention forward, and the gradients of q, k, v, the bias's line and the key bias
backward, a pair of blocks at a time. With s the logits, P = exp(s - lse) the weights, H the entropy
and z = s - lse = ln P, a row has

    ds_j = P_j (dP_j - sum_k P_k dP_k)    from out = sum_j P_j v_j, where dP_j = dout . v_j
                                          and sum_k P_k dP_k = dout . out
         + dlse P_j                       from lse = ln sum_j exp s_j
         - dH P_j (z_j + H)               from H = -sum_j P_j z_j

that is, ds = P (dP - c - dH z) with one number a row, c = dout . out - dlse + dH H. So the gradient
through lse costs a kernel nothing, the one through the entropy a multiplication per logit, and
neither needs more saved than out, lse and H. A bias by distance has the sums of ds over diagonals
for its gradient, a key bias those over columns. With factors a by distance, which are constants,
the logits are a q . k + m. Then the products q . k have the gradient a ds. Without the entropy this
is FlashAttention-2 (Dao, 2023, arXiv:2307.08691); with it, the forward pass has one more running
sum, e = sum_j exp(s_j - m) (s_j - m), which gives H = ln l - e / l.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero

from nope.attention.bias import AlibiBias, Bias, distances
from nope.attention.structure import AttentionOutput, Mask
from nope.runtime.products import exact_einsum

# Finite stand-ins for -inf: their sums and products are numbers, so that a row or a block that
# sees nothing makes no NaN. A hidden logit is HIDDEN; the running maximum starts at FLOOR, above
# it, which makes exp(hidden - maximum) exactly 0 even in a row that sees nothing.
HIDDEN = -1e30
FLOOR = -1e29
# The log-sum-exp of rows beyond the end, in which no key then has any weight, whatever its bias.
BEYOND = 1e30


@dataclasses.dataclass(frozen=True)
class Rules:
    """Static rules of a call: mask by position, and whether entropy and largest logit are returned.

    offset: position of query 0 among the keys; None where only `Operands.offset` knows it.
    """

    causal: bool
    window: int | None
    offset: int | None
    entropy: bool
    max_logit: bool = False

    @property
    def behind(self) -> int | None:
        """A query at position p sees keys as far back as p - behind; None: all of them."""
        return None if self.window is None else self.window - 1

    @property
    def ahead(self) -> int | None:
        """And keys up to p + ahead."""
        return 0 if self.causal else self.behind


class Operands(NamedTuple):
    """The arrays of a call. T queries, S keys, none of them padded. Factors and slopes are
    constants.

    line_ND: float32 [N, T + S - 1], the bias by distance in the order of `bias.distances`: query
        t and key s have entry t - s + S - 1. None without a bias.
    key_bias_BNS: float32, added to the logits by query head and key, or None.
    factors_ND: float32 [N, T + S - 1], by which the products are multiplied, in the order of
        `line_ND`, without which there are none; None for 1.
    slopes_N: float32, in place of a line for kernels that are `by_slope`: a bias of
        -slope (t - s) at query position t and key s, under a causal rule.
    q_ids_BT, kv_ids_BS: int32 segment ids, or None.
    offset: int32 scalar, the position of query 0 among the keys.
    """

    q_BTNH: jax.Array
    k_BSKH: jax.Array
    v_BSKH: jax.Array
    line_ND: jax.Array | None
    key_bias_BNS: jax.Array | None
    factors_ND: jax.Array | None
    slopes_N: jax.Array | None
    q_ids_BT: jax.Array | None
    kv_ids_BS: jax.Array | None
    offset: jax.Array


class Rows(NamedTuple):
    """Inputs of the backward pass by query. Float32 lse and c are 0 in rows that see nothing. The
    entropy may have no cotangent."""

    d_out_BTNH: jax.Array
    lse_BNT: jax.Array
    c_BNT: jax.Array
    d_entropy_BNT: jax.Array | None


class Gradients(NamedTuple):
    """Gradients of an `Operands`' arrays, each in its dtype; None for a line and a key bias not
    asked for."""

    d_q_BTNH: jax.Array
    d_k_BSKH: jax.Array
    d_v_BSKH: jax.Array
    d_line_ND: jax.Array | None = None
    d_key_bias_BNS: jax.Array | None = None


class Wanted(NamedTuple):
    """Static choice of the gradients besides those of q, k and v. True only where there is such an
    operand."""

    line: bool
    key_bias: bool


class Kernel(Protocol):
    """Flash kernel: two pure functions of arrays; hashable, because it is static under jit.

    by_slope: whether it takes a bias that falls linearly with the distance as `Operands.slopes_N`.
    """

    @property
    def by_slope(self) -> bool: ...

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput: ...

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients: ...


def flash_attention(
    kernel: Kernel,
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    mask: Mask,
    bias: Bias | None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool,
    max_logit: bool = False,
    keys: int | None = None,
) -> AttentionOutput:
    """`nope.attention.api.attention` by a kernel. keys: number of those whose distances a bias has,
    where the kernel reaches more than the S given ones; None for S."""
    T, S = q_BTNH.shape[1], k_BSKH.shape[1]
    offset = 0 if mask.offset is None else mask.offset
    known = offset if isinstance(offset, int) else None
    rules = Rules(mask.causal, mask.window, known, entropy, max_logit)
    line_ND = factors_ND = slopes_N = None
    if kernel.by_slope and isinstance(bias, AlibiBias):
        slopes_N = jax.lax.stop_gradient(jnp.asarray(bias.slopes_N, jnp.float32))
    elif bias is not None:
        distance_D = distances(T, S if keys is None else keys, mask.offset)
        lines = bias.by_distance(distance_D), bias.factors_by_distance(distance_D)
        # Those of float64 parameters would be float64.
        line_ND, factors_ND = (None if x is None else x.astype(jnp.float32) for x in lines)
    operands = Operands(
        q_BTNH,
        k_BSKH,
        v_BSKH,
        line_ND,
        key_bias_BNS,
        factors_ND,
        slopes_N,
        _as_int32(mask.q_segments_BT),
        _as_int32(mask.kv_segments_BS),
        jnp.asarray(offset, jnp.int32),
    )
    return attend(kernel, rules, operands)


def logit_gradient(
    p: jax.Array, d_p: jax.Array, z: jax.Array, c: jax.Array, d_entropy: jax.Array | None
) -> jax.Array:
    """ds = P (dP - c - dH z) of some logits, as derived above. c and d_entropy broadcast over the
    keys. Only the product dH z matters. Both may be in other units. For kernels too: it is three
    operations on arrays."""
    pull = d_p - c
    if d_entropy is not None:
        pull -= d_entropy * z
    return p * pull


def _as_int32(ids: jax.Array | None) -> jax.Array | None:
    return None if ids is None else ids.astype(jnp.int32)


def zeros_like(array: jax.Array | None, wanted: bool) -> jax.Array | None:
    """Initial sums of a gradient; None where it is not wanted."""
    return jnp.zeros_like(array) if wanted and array is not None else None


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def attend(kernel: Kernel, rules: Rules, operands: Operands) -> AttentionOutput:
    """Outputs of the kernel, differentiable through all of them."""
    return kernel.forward(rules, operands)


class _Saved(NamedTuple):
    operands: Operands
    result: AttentionOutput
    # Structure and not data: () for yes, None for no.
    line_gradient: tuple[()] | None
    key_bias_gradient: tuple[()] | None


def _attend_forward(kernel: Kernel, rules: Rules, traced: Any):
    biases = traced.line_ND, traced.key_bias_BNS
    operands = jax.tree.map(
        lambda x: x.value, traced, is_leaf=lambda x: isinstance(x, CustomVJPPrimal)
    )
    result = kernel.forward(rules, operands)
    wanted = (() if x is not None and x.perturbed else None for x in biases)
    return result, _Saved(operands, result, *wanted)


def _attend_backward(kernel: Kernel, rules: Rules, saved: _Saved, cotangents: AttentionOutput):
    operands, (out_BTNH, lse_BNT, entropy_BNT, _), *marks = saved
    # An output that is not used downstream has a symbolic zero for its cotangent; that of the
    # largest logit is ignored.
    d_out_BTNH, d_lse_BNT, d_entropy_BNT, _ = (
        None if isinstance(x, SymbolicZero) else x for x in cotangents
    )
    if d_out_BTNH is None:
        d_out_BTNH = jnp.zeros_like(out_BTNH)
    if len(out_BTNH) == 1:  # ten times as fast on a CPU as with that axis
        c_BNT = exact_einsum('TNH,TNH->NT', d_out_BTNH[0], out_BTNH[0])[None]
    else:
        c_BNT = exact_einsum('BTNH,BTNH->BNT', d_out_BTNH, out_BTNH)
    if d_lse_BNT is not None:
        c_BNT -= d_lse_BNT
    if d_entropy_BNT is not None and entropy_BNT is not None:
        c_BNT += d_entropy_BNT * entropy_BNT
    empty_BNT = lse_BNT == -jnp.inf
    rows = Rows(
        d_out_BTNH,
        jnp.where(empty_BNT, 0.0, lse_BNT),
        jnp.where(empty_BNT, 0.0, c_BNT),
        d_entropy_BNT,
    )
    wanted = Wanted(*(mark is not None for mark in marks))
    gradients = kernel.backward(rules, operands, rows, wanted=wanted)
    # The gradient of constants and of integers is None.
    none: Any = None
    return (Operands(*gradients, none, none, none, none, none),)


attend.defvjp(_attend_forward, _attend_backward, symbolic_zeros=True)
