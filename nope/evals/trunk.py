"""Shared-prefix KV cache for batched scoring."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import batching
from nope.model import ModelConfig
from nope.model.cache import Cache, empty
from nope.model.decoding import read


class Trunk:
    """KV cache of one row (one per batch shard) that holds the prefix of a batch.

    The cache is truncated and extended from batch to batch, so each prefix is read once. piece:
    tokens read at a time. slots: of every cache; a multiple of the piece, and one piece more than
    the longest sequence.
    """

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Any], mesh: Mesh, slots: int, piece: int
    ) -> None:
        self.piece = piece
        self._config = config
        self._weights = weights
        self._slots = slots
        self._parts = sharding.batch_parts(mesh, sharding.GENERATION_RULES)
        self._place = functools.partial(
            sharding.put, sharding=sharding.rows(mesh, sharding.GENERATION_RULES)
        )
        self._tokens = np.zeros(0, np.int32)
        self._length = 0.0
        self._cache: Cache | None = None

    def rows(self, prefix: np.ndarray, length_B: np.ndarray) -> Cache:
        """Cache of B rows that hold the prefix. length_B: float32, the final length of each row.
        All are equal where there is a prefix and the model depends on the length."""
        lengths = self._place(length_B)
        if not len(prefix):
            return _empty(self._config, self._slots, lengths)
        self._read(prefix, float(length_B[0]))
        assert self._cache is not None
        return _spread(self._cache, np.int32(len(prefix)), lengths)

    def _read(self, prefix: np.ndarray, length: float) -> None:
        length_P = self._place(np.full(self._parts, length, np.float32))
        if self._cache is None or (self._config.follows_length and length != self._length):
            self._cache = _empty(self._config, self._slots, length_P)
            self._tokens, self._length = prefix[:0], length
        self._cache = self._cache._replace(length_B=length_P)
        known = batching.shared_prefix(self._tokens, prefix)
        for begin in range(known, len(prefix), self.piece):
            piece = prefix[begin : begin + self.piece]
            tokens = batching.right_padded([piece] * self._parts, self._parts, self.piece)
            self._cache = _fill(
                self._config,
                self._weights,
                self._cache._replace(filled=jnp.asarray(begin, jnp.int32)),
                self._place(tokens),
            )
        if known < len(prefix):
            self._tokens = prefix


@functools.partial(jax.jit, static_argnums=(0, 1))
def _empty(config: ModelConfig, slots: int, length_B: jax.Array) -> Cache:
    return empty(config, length_B, slots)._replace(filled=jnp.zeros((), jnp.int32))


@jax.jit
def _spread(trunk: Cache, filled: jax.Array, length_B: jax.Array) -> Cache:
    """The trunk's first `filled` tokens in every row."""
    rows_B = jnp.zeros(length_B.shape[0], jnp.int32)
    return trunk.take(rows_B)._replace(filled=filled, length_B=length_B)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def _fill(
    config: ModelConfig, weights: Mapping[str, Any], cache: Cache, tokens_BC: jax.Array
) -> Cache:
    return read(config, weights, tokens_BC, cache)[1]
