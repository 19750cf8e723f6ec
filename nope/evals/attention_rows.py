"""Attention weights of chosen queries on all keys, in batches of sequences that fit a budget.

A few queries at a time: T x T numbers of a long sequence are never held.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import batching
from nope.evals.forward import Progress
from nope.model import ModelConfig, apply
from nope.variables import Variables

BUDGET = 2**26  # weights of all models that are held at once, on each part of the mesh


class Model(NamedTuple):
    """A model that is measured."""

    config: ModelConfig
    variables: Variables


class WeightRows(NamedTuple):
    """Weights of some queries in a batch of sequences.

    members: numbers of the batch's sequences, in its order. Rows behind them are surplus.
    tokens_BT: int32. lengths_B: int32, tokens of each row; a surplus row has 1. queries_R: int32
    positions. Some lie behind the end of a shorter sequence. weights: float32 [L, B, N, R, T] for
    each model.
    """

    members: list[int]
    tokens_BT: jax.Array
    lengths_B: jax.Array
    queries_R: jax.Array
    weights: list[jax.Array]


def over(
    models: Sequence[Model],
    sequences: Sequence[np.ndarray],
    *,
    mesh: Mesh,
    queries: int | None = None,
    budget: int = BUDGET,
    progress: Progress = iter,
) -> Iterator[WeightRows]:
    """The chosen queries of all sequences, int32 [T] each, which all models read alike.

    queries: of each sequence, evenly spaced up to its last token; None for all. budget: weights
    held at once on each part of the mesh. To be iterated under `sharding.use(mesh)`.
    """
    parts = sharding.batch_parts(mesh)
    place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
    configs = [model.config for model in models]
    most = min(config.longest or sys.maxsize for config in configs)
    by_length: dict[int, list[int]] = {}
    for number, n in enumerate(map(len, sequences)):
        # Sequences whose chosen queries follow from their lengths are not padded.
        length = n if queries is not None else min(batching.padded_length(n), most)
        by_length.setdefault(length, []).append(number)
    for length, members in progress(sorted(by_length.items())):
        at = chosen(length, queries)
        together = at_once(configs, length, budget)
        size = batching.padded_rows(len(members), max(together // len(at), 1) * parts, parts)
        step = max(together * parts // size, 1)
        for start in range(0, len(members), size):
            some = members[start : start + size]
            tokens = batching.right_padded([sequences[i] for i in some], size, length)
            lengths = np.ones(size, np.int32)
            lengths[: len(some)] = [len(sequences[i]) for i in some]
            placed = place(tokens), place(lengths)
            for begin in range(0, len(at), step):
                queries_R = jnp.asarray(at[begin : begin + step])
                found = [weights(*model, *placed, queries_R) for model in models]
                yield WeightRows(some, *placed, queries_R, found)


def check_fits(config: ModelConfig, sequences: Sequence[np.ndarray]) -> None:
    """ValueError for sequences that are empty, or longer than the position encoding is defined
    for."""
    lengths = [len(x) for x in sequences]
    if min(lengths) < 1:
        raise ValueError('a sequence is empty')
    if config.longest is not None and max(lengths) > config.longest:
        raise ValueError(
            f'a sequence has {max(lengths)} tokens; {config.describe_position()} positions end at '
            f'{config.longest}'
        )


def chosen(length: int, queries: int | None) -> np.ndarray:
    """Evenly spaced positions of `length`, int32, the last one among them."""
    if queries is None or queries >= length:
        return np.arange(length, dtype=np.int32)
    ends = (np.arange(1, queries + 1) * length) // queries
    return (ends - 1).astype(np.int32)


def at_once(models: Iterable[ModelConfig], length: int, budget: int = BUDGET) -> int:
    """Queries of one sequence of `length` tokens whose weights in all models fit the budget."""
    each = sum(config.attention_layers * config.heads for config in models) * length
    return max(budget // each, 1)


@functools.partial(jax.jit, static_argnums=0)
def weights(
    config: ModelConfig,
    variables: Variables,
    tokens_BT: jax.Array,
    lengths_B: jax.Array,
    queries_R: jax.Array,
) -> jax.Array:
    """Attention weights of chosen queries on all keys, float32 [L, B, N, R, T].

    tokens_BT: int32, padded on the right, which no query of the sequence sees. lengths_B: tokens of
    each. queries_R: int32 positions.
    """
    length = lengths_B.astype(jnp.float32) if config.follows_length else None
    found = apply(config, variables, tokens_BT, length=length, queries_R=queries_R).rows
    assert found is not None
    return found
