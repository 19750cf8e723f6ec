"""Ring attention: exact attention over a sequence that is split over devices.

Every device keeps its queries. Keys, values, their segment ids and their bias travel around the
ring, one neighbour at a time, each shard while the kernel works on the one before. Each device
joins its partial results (`combine`). For the gradients they travel once more, and the sums of
their own gradients behind them, which are complete when they are back. Given the log-sum-exp over
all keys, each shard's part of a gradient is the kernel's own. So a device holds two shards of keys
and values at a time, forward and backward, and logits exist block by block only. A ring of N sends
each shard N times, the last for nothing: one loop compiles the kernel once.

Liu et al., 2023, "Ring Attention with Blockwise Transformers" (arXiv:2310.01889).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from nope.attention import api
from nope.attention.backend import describe
from nope.attention.bias import Bias
from nope.attention.combine import combine
from nope.attention.flash import (
    Gradients,
    Kernel,
    Operands,
    Rows,
    Rules,
    Wanted,
    flash_attention,
    zeros_like,
)
from nope.attention.structure import AttentionOutput, Mask


def ring_attention(
    q_BTNH: jax.Array,
    k_BSKH: jax.Array,
    v_BSKH: jax.Array,
    *,
    axis: str,
    mask: Mask = Mask(),  # noqa: B008 (frozen, holds no arrays)
    bias: Bias | None = None,
    key_bias_BNS: jax.Array | None = None,
    entropy: bool = False,
    max_logit: bool = False,
    implementation: str | None = None,
) -> AttentionOutput:
    """`attention` of one device's queries over the keys of all devices along a mesh axis.

    Call it inside a jitted `jax.shard_map(..., check_vma=False)`. Arguments are this device's
    shards of `attention`'s: T queries and S keys of P T and P S, in order along the axis; segment
    ids and the key bias likewise, the bias whole. `mask.offset` is the position of the first query
    of them all.

    Returns this device's rows, as those of `attention` to float32 rounding; With half precision
    every shard rounds `out` and the gradients once before the sum in float32. Raises as
    `attention`, ValueError for a causal mask without an offset and T != S, and for an
    implementation that is no flash kernel.
    """
    api.check(q_BTNH, k_BSKH, v_BSKH, mask, bias, key_bias_BNS)
    T, S = q_BTNH.shape[1], k_BSKH.shape[1]
    first = jnp.asarray(0 if mask.offset is None else mask.offset, jnp.int32)
    moving = dataclasses.replace(mask, offset=jax.lax.axis_index(axis) * T + first)
    named = api.BACKENDS.get(implementation or '')
    if named is not None and named.kernel is None:
        raise api.Unsupported(
            named.name,
            f'the sequence is split over the devices of {axis!r}, for which it would have to be a '
            'flash kernel',
        )
    call = describe(
        q_BTNH, k_BSKH, moving, bias, entropy,
        max_logit=max_logit, key_bias=key_bias_BNS is not None,
    )  # fmt: skip
    backend = api.choose(call, implementation)
    assert backend.kernel is not None  # all that take an offset that devices alone know
    return flash_attention(
        Ring(backend.kernel, axis), q_BTNH, k_BSKH, v_BSKH,
        mask=moving, bias=bias, key_bias_BNS=key_bias_BNS, entropy=entropy, max_logit=max_logit,
        keys=jax.lax.axis_size(axis) * S,
    )  # fmt: skip


class _Shard(NamedTuple):
    """The operands that travel: those by key."""

    k_BSKH: jax.Array
    v_BSKH: jax.Array
    key_bias_BNS: jax.Array | None
    kv_ids_BS: jax.Array | None

    @classmethod
    def of(cls, operands: Operands) -> _Shard:
        return cls(*(getattr(operands, name) for name in cls._fields))


@dataclasses.dataclass(frozen=True)
class Ring:
    """A kernel over the keys of all devices, made of one over those of each.

    Its operands are a device's shards, except that the bias's line and factors have the distances
    of this device's queries to all keys. `offset` is the position of this device's first query.
    """

    kernel: Kernel
    axis: str

    @property
    def by_slope(self) -> bool:
        """As the kernel of each device."""
        return self.kernel.by_slope

    def forward(self, rules: Rules, operands: Operands) -> AttentionOutput:
        """Forward pass; see `nope.attention.flash.Kernel`."""

        def step(carry, turn):
            # The next shard is under way while the kernel works on this one.
            seen, shard = carry
            result = self.kernel.forward(rules, self._meeting(operands, shard, turn)[0])
            return (combine(seen, result), self._pass_on(shard)), None

        B, T, N, _ = operands.q_BTNH.shape
        nothing = AttentionOutput(
            jnp.zeros_like(operands.q_BTNH, jnp.float32),
            jnp.full((B, N, T), -jnp.inf),
            jnp.zeros((B, N, T)) if rules.entropy else None,
            jnp.full((B, N, T), -jnp.inf) if rules.max_logit else None,
        )
        turns = jnp.arange(jax.lax.axis_size(self.axis))
        (seen, _), _ = jax.lax.scan(step, (nothing, _Shard.of(operands)), turns)
        return seen._replace(out=seen.out.astype(operands.q_BTNH.dtype))

    def backward(
        self, rules: Rules, operands: Operands, rows: Rows, *, wanted: Wanted
    ) -> Gradients:
        """Backward pass; see `nope.attention.flash.Kernel`."""

        def step(carry, turn):
            d_q, d_line, shard, d_shard = carry
            here, at = self._meeting(operands, shard, turn)
            # As forward; the sums of this shard's gradients arrive during the kernel.
            shard, d_shard = self._pass_on((shard, d_shard))
            part = self.kernel.backward(rules, here, rows, wanted=wanted)
            d_q += part.d_q_BTNH.astype(jnp.float32)
            d_line = jax.tree.map(lambda sums, x: _add_to_line(sums, x, at), d_line, part.d_line_ND)
            mine = part.d_k_BSKH, part.d_v_BSKH, part.d_key_bias_BNS
            d_shard = jax.tree.map(lambda sums, x: sums + x.astype(jnp.float32), d_shard, mine)
            return (d_q, d_line, shard, d_shard), None

        keys = operands.k_BSKH
        start = (
            jnp.zeros_like(operands.q_BTNH, jnp.float32),
            zeros_like(operands.line_ND, wanted.line),
            _Shard.of(operands),
            (
                *(jnp.zeros_like(keys, jnp.float32),) * 2,
                zeros_like(operands.key_bias_BNS, wanted.key_bias),
            ),
        )
        turns = jnp.arange(jax.lax.axis_size(self.axis))
        sums, _ = jax.lax.scan(step, start, turns)
        d_q, d_line, _, d_shard = sums
        d_k, d_v, d_key_bias = self._pass_on(d_shard)
        d_q, d_k, d_v = (x.astype(operands.q_BTNH.dtype) for x in (d_q, d_k, d_v))
        return Gradients(d_q, d_k, d_v, d_line, d_key_bias)

    def _pass_on(self, arrays: Any) -> Any:
        size = jax.lax.axis_size(self.axis)
        onwards = [(device, (device + 1) % size) for device in range(size)]
        return jax.tree.map(lambda x: jax.lax.ppermute(x, self.axis, onwards), arrays)

    def _meeting(self, operands: Operands, shard: _Shard, turn: Any) -> tuple[Operands, jax.Array]:
        """(this device's queries with the shard that is here, where its part of the line is)."""
        size, rank = jax.lax.axis_size(self.axis), jax.lax.axis_index(self.axis)
        T, S = operands.q_BTNH.shape[1], shard.k_BSKH.shape[1]
        first_key = (rank - turn) % size * S
        at = (size - 1) * S - first_key
        line_ND, factors_ND = jax.tree.map(
            lambda line: jax.lax.dynamic_slice_in_dim(line, at, T + S - 1, axis=1),
            (operands.line_ND, operands.factors_ND),
        )
        return operands._replace(
            **shard._asdict(),
            line_ND=line_ND,
            factors_ND=factors_ND,
            offset=operands.offset - first_key,
        ), at


def _add_to_line(sums_ND: jax.Array, part_ND: jax.Array, at: jax.Array) -> jax.Array:
    """The sums with a part of a line added, whose first distance is the one at `at`."""
    old_ND = jax.lax.dynamic_slice_in_dim(sums_ND, at, part_ND.shape[1], axis=1)
    return jax.lax.dynamic_update_slice_in_dim(sums_ND, old_ND + part_ND, at, axis=1)
