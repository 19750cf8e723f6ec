"""Loads and stores of the Triton attention kernels, within the ends of the arrays.

Blocks are powers of two, and may reach beyond the last row or the last coordinate of a head, where
a GPU has the next row, head or sequence. They are loaded as zeros from there, and not stored.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from nope.runtime.libraries import triton

TRITON = 'jax.experimental.pallas.triton'


def has_triton() -> bool:
    """Whether this JAX has a Triton compiler for Pallas: deprecated since JAX 0.11, it may go."""
    try:
        importlib.import_module(TRITON)
    except ImportError:
        return False
    return True


def ragged(at: jax.Array, length: int, *, cut: bool = True) -> jax.Array | None:
    """`at` where a block of its size may reach beyond `length`, else None."""
    return at if cut and length % at.shape[0] else None


def _inside(head_dim: int, ref: Any, at: jax.Array | None, length: int) -> jax.Array | None:
    """bool [block, padded H], False beyond H and for `at` beyond `length` (None: there are none);
    None where that is nowhere."""
    mask, padded = None, ref.shape[-1]
    if padded > head_dim:
        mask = (lax.iota(jnp.int32, padded) < head_dim)[None, :]
    if at is not None:
        inside = (at < length)[:, None]
        mask = inside if mask is None else mask & inside
    return None if mask is None else jnp.broadcast_to(mask, ref.shape)


def load_matrix(head_dim: int, ref: Any, at: jax.Array | None, length: int) -> jax.Array:
    """[block, padded H], zeros where `_inside` is False."""
    mask = _inside(head_dim, ref, at, length)
    return triton.load(ref) if mask is None else triton.load(ref, mask=mask, other=0.0)


def load_vector(ref: Any, at: jax.Array | None, length: int) -> jax.Array:
    """[block], with zeros for `at` beyond `length`."""
    if at is None:
        return triton.load(ref)
    return triton.load(ref, mask=at < length, other=0)


def store_matrix(head_dim: int, ref: Any, x: jax.Array, at: jax.Array | None, length: int) -> None:
    """Stores [block, padded H] where `_inside`: the rest are the numbers of other programs."""
    _store(ref, x.astype(ref.dtype), _inside(head_dim, ref, at, length))


def store_vector(ref: Any, x: jax.Array, at: jax.Array | None, length: int) -> None:
    """Stores [block], but for `at` beyond `length`."""
    _store(ref, x, None if at is None else at < length)


def _store(ref: Any, x: jax.Array, mask: jax.Array | None) -> None:
    if mask is None:
        ref[...] = x
    else:
        triton.store(ref, x, mask=mask)
