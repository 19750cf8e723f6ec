"""Cross-entropy that never holds the float32 logits of a long window.

The vocabulary projection belongs to the loss: logits exist for one chunk of positions at a
time, forward and backward, and are recomputed in the backward pass. Where they are small
anyway the whole array is used directly and kept.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float32, Int, Int32, Real

from nope.runtime.mesh_axes import axes_of, parts_of
from nope.runtime.platform import target_device
from nope.runtime.products import exact_einsum


class _Limits(NamedTuple):
    """float32 logits per device: used whole up to `direct`, else in chunks of about `chunk`. For
    `rows` tokens a chunk may have up to `most`, as the head is read once a chunk."""

    direct: int
    chunk: int
    rows: int
    most: int


# Measured at D = 512, V = 4096, forward and backward: whole is 10 percent faster than chunks
# at 2**23 logits (recomputing them costs a product) and level at 2**24, forward alone a third
# slower there; 2**21 is the fastest chunk, by 5 to 15 percent over 2**19 and 2**22.
# A wide head is read once a chunk. Two cores at D = 576, V = 49,152: chunks of 256 tokens are 2.1
# times as fast forward and backward as those of 2**21 logits, and level with 512. At V = 262,144
# 2**25 logits are 128 tokens, 3.9 times as fast.
_CPU = _Limits(direct=2**23, chunk=2**21, rows=256, most=2**25)
# Not measured: 256 MiB, a few thousand tokens of a vocabulary of 32,000.
_ACCELERATOR = _Limits(direct=2**26, chunk=2**26, rows=256, most=2**26)


def token_loss(
    hidden_BTD: Float[Array, 'B T D'],
    head_DV: Float[Array, 'D V'],
    targets_BT: Int[Array, 'B T'],
    *,
    cap: float | None = None,
    chunk: int | None = None,
) -> Float32[Array, 'B T']:
    """Negative log-likelihood of every target, nats.

        nll_t = ln sum_v exp(l_tv) - l_t,target(t),   l_tv = h_t . W_v

    Args:
      hidden_BTD: final hidden states, float32 or half precision.
      head_DV: the vocabulary projection, the dtype of `hidden_BTD`.
      targets_BT: int, in [0, V).
      cap: c of the logits c tanh(l / c); None for l.
      chunk: positions of every sequence whose logits exist at once; None decides from the
        shapes, T or more means all of them.

    Returns:
      nll_BT float32. Logits are accumulated and normalised in float32; gradients come back in
      the dtypes of their arrays. A gradient that nobody uses (a frozen head) is dead code.
    """
    B, T, _ = hidden_BTD.shape
    if chunk is None:
        chunk = default_chunk(B, T, head_DV.shape[1], target_device()[0])
    if chunk >= T:
        return _direct_loss(cap, hidden_BTD, head_DV, targets_BT)
    parts = _parts(T)
    hidden_CBTD, targets_CBT = (_split(array, chunk, parts) for array in (hidden_BTD, targets_BT))
    return _join(_chunked_core(cap, hidden_CBTD, head_DV, targets_CBT), T, parts)


def token_choices(
    hidden_BTD: Float[Array, 'B T D'],
    head_DV: Float[Array, 'D V'],
    targets_BT: Int[Array, 'B T'],
    *,
    cap: float | None = None,
) -> tuple[Float32[Array, 'B T'], Int32[Array, 'B T']]:
    """Negative log-likelihood of every target in nats, float32, and the most likely token, int32.

    Both [B, T]; arguments as `token_loss`, forward only.
    """
    B, T, _ = hidden_BTD.shape
    chunk = default_chunk(B, T, head_DV.shape[1], target_device()[0])

    def one(operands: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        logits_BTV = logits(operands[0], head_DV, cap)
        return _nll(logits_BTV, operands[1])[0], jnp.argmax(logits_BTV, -1).astype(jnp.int32)

    if chunk >= T:
        return one((hidden_BTD, targets_BT))
    parts = _parts(T)
    operands = _split(hidden_BTD, chunk, parts), _split(targets_BT, chunk, parts)
    nll_CBT, best_CBT = jax.lax.map(one, operands)
    return _join(nll_CBT, T, parts), _join(best_CBT, T, parts)


def logits(
    hidden: Float[Array, '*BT D'], head_DV: Float[Array, 'D V'], cap: float | None = None
) -> Float32[Array, '*BT V']:
    """[..., V] float32 of hidden states [..., D]; within -cap and cap where there is one."""
    found = exact_einsum('...D,DV->...V', hidden, head_DV)
    return found if cap is None else cap * jnp.tanh(found / cap)


def mean_loss(
    nll_BT: Float32[Array, 'B T'],
    weights_BT: Real[Array, 'B T'] | None = None,
    total: Float32[Array, ''] | None = None,
) -> Float32[Array, '']:
    """Weighted mean over tokens, sum(w nll) / sum(w), float32 scalar; 0 where all weights are 0.

    total: float32 scalar that takes the place of sum(w). With that of a whole batch the results of
    its parts add up to the mean over the batch. Without weights it has no meaning.
    """
    if weights_BT is None:
        return jnp.mean(nll_BT)
    weights_BT = weights_BT.astype(jnp.float32)
    if total is None:
        total = jnp.sum(weights_BT)
    # A weight of 0 removes the token even where its loss is not finite (from the loss, not from a
    # gradient that runs through a hidden state that is not).
    weighted_BT = jnp.where(weights_BT == 0, 0.0, nll_BT * weights_BT)
    return jnp.sum(weighted_BT) / jnp.where(total == 0, 1.0, total)


def default_chunk(batch: int, length: int, vocab: int, platform: str) -> int:
    """Positions per chunk: all of them where their logits are few."""
    limits = _CPU if platform == 'cpu' else _ACCELERATOR
    # Under a mesh the batch, the sequence and the vocabulary are spread over its devices, and so
    # are the logits of each chunk.
    devices = max(jax.sharding.get_abstract_mesh().size, 1)
    if batch * length * vocab <= limits.direct * devices:
        return length
    wanted = max(limits.chunk, min(limits.rows * vocab, limits.most))
    positions = max(wanted * devices // (batch * vocab), 1)
    chunks = math.ceil(length / positions)
    return math.ceil(length / chunks)


def _nll(logits_BTV: jax.Array, targets_BT: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(nll, lse), both [B, T] float32."""
    lse_BT = jax.nn.logsumexp(logits_BTV, axis=-1)
    picked_BT = jnp.take_along_axis(logits_BTV, targets_BT[..., None], axis=-1)[..., 0]
    return lse_BT - picked_BT, lse_BT


def _d_logits(
    cap: float | None,
    logits_BTV: jax.Array,
    lse_BT: jax.Array,
    targets_BT: jax.Array,
    d_nll_BT: jax.Array,
) -> jax.Array:
    """(softmax - one-hot) d_nll, by comparison with the index: no scatter, one pass; times the
    slope 1 - tanh^2 of a cap."""
    hit_BTV = targets_BT[..., None] == jnp.arange(logits_BTV.shape[-1])
    slope_BTV = (jnp.exp(logits_BTV - lse_BT[..., None]) - hit_BTV) * d_nll_BT[..., None]
    return slope_BTV if cap is None else slope_BTV * (1.0 - jnp.square(logits_BTV / cap))


def _d_hidden(d_logits_BTV: jax.Array, head_DV: jax.Array) -> jax.Array:
    return exact_einsum('BTV,DV->BTD', d_logits_BTV, head_DV).astype(head_DV.dtype)


def _d_head(hidden_BTD: jax.Array, d_logits_BTV: jax.Array) -> jax.Array:
    return exact_einsum('BTD,BTV->DV', hidden_BTD, d_logits_BTV)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _direct_loss(
    cap: float | None, hidden_BTD: jax.Array, head_DV: jax.Array, targets_BT: jax.Array
) -> jax.Array:
    return _nll(logits(hidden_BTD, head_DV, cap), targets_BT)[0]


def _direct_forward(
    cap: float | None, hidden_BTD: jax.Array, head_DV: jax.Array, targets_BT: jax.Array
):
    logits_BTV = logits(hidden_BTD, head_DV, cap)
    nll_BT, lse_BT = _nll(logits_BTV, targets_BT)
    return nll_BT, (hidden_BTD, head_DV, targets_BT, logits_BTV, lse_BT)


def _direct_backward(cap: float | None, saved, d_nll_BT: jax.Array):
    hidden_BTD, head_DV, targets_BT, logits_BTV, lse_BT = saved
    d_logits_BTV = _d_logits(cap, logits_BTV, lse_BT, targets_BT, d_nll_BT)
    d_logits_BTV = d_logits_BTV.astype(hidden_BTD.dtype)
    d_head_DV = _d_head(hidden_BTD, d_logits_BTV).astype(head_DV.dtype)
    return _d_hidden(d_logits_BTV, head_DV), d_head_DV, None


_direct_loss.defvjp(_direct_forward, _direct_backward)


def _parts(length: int) -> int:
    """Parts of a sequence of which every chunk has an equal piece: those that devices hold, so that
    each has its share of every chunk."""
    parts = parts_of(axes_of('sequence'))
    return parts if length % parts == 0 else 1


def _split(array_BT: jax.Array, chunk: int, parts: int) -> jax.Array:
    """[B, T, ...] -> [chunks, B, chunk', ...]. Every chunk has an equal piece of each part of the
    sequence, padded with zeros; chunk' is `chunk` rounded up to a multiple of `parts`."""
    B, T = array_BT.shape[:2]
    inner = array_BT.shape[2:]
    piece = -(-chunk // parts)
    chunks = -(-T // (parts * piece))
    widths = [(0, 0), (0, 0), (0, chunks * piece - T // parts)] + [(0, 0)] * len(inner)
    padded = jnp.pad(array_BT.reshape(B, parts, T // parts, *inner), widths)
    pieces = padded.reshape(B, parts, chunks, piece, *inner)
    return jnp.moveaxis(pieces, 2, 0).reshape(chunks, B, parts * piece, *inner)


def _join(array_CBT: jax.Array, length: int, parts: int) -> jax.Array:
    """The inverse of `_split`."""
    C, B, chunk = array_CBT.shape[:3]
    inner = array_CBT.shape[3:]
    pieces = jnp.moveaxis(array_CBT.reshape(C, B, parts, chunk // parts, *inner), 0, 2)
    whole = pieces.reshape(B, parts, C * chunk // parts, *inner)[:, :, : length // parts]
    return whole.reshape(B, length, *inner)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chunked_core(
    cap: float | None, hidden_CBTD: jax.Array, head_DV: jax.Array, targets_CBT: jax.Array
) -> jax.Array:
    return _chunked_forward(cap, hidden_CBTD, head_DV, targets_CBT)[0]


def _chunked_forward(
    cap: float | None, hidden_CBTD: jax.Array, head_DV: jax.Array, targets_CBT: jax.Array
):
    def one(chunk):
        hidden_BTD, targets_BT = chunk
        return _nll(logits(hidden_BTD, head_DV, cap), targets_BT)

    nll_CBT, lse_CBT = jax.lax.map(one, (hidden_CBTD, targets_CBT))
    return nll_CBT, (hidden_CBTD, head_DV, targets_CBT, lse_CBT)


def _chunked_backward(cap: float | None, saved, d_nll_CBT: jax.Array):
    hidden_CBTD, head_DV, targets_CBT, lse_CBT = saved

    def one(d_head_DV, chunk):
        hidden_BTD, targets_BT, lse_BT, d_nll_BT = chunk
        logits_BTV = logits(hidden_BTD, head_DV, cap)
        d_logits_BTV = _d_logits(cap, logits_BTV, lse_BT, targets_BT, d_nll_BT)
        d_logits_BTV = d_logits_BTV.astype(hidden_BTD.dtype)
        # The carry feeds nothing but itself: unused, it and its product disappear under jit.
        return d_head_DV + _d_head(hidden_BTD, d_logits_BTV), _d_hidden(d_logits_BTV, head_DV)

    d_head_DV, d_hidden_CBTD = jax.lax.scan(
        one, jnp.zeros(head_DV.shape, jnp.float32), (hidden_CBTD, targets_CBT, lse_CBT, d_nll_CBT)
    )
    return d_hidden_CBTD, d_head_DV.astype(head_DV.dtype), None


_chunked_core.defvjp(_chunked_forward, _chunked_backward)
