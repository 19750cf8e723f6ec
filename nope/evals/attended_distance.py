"""Normalised distance of the most attended key, as a histogram for each head.

Of query q (0-based) with weights a_qk, (q - argmax_k a_qk) / (q + 1): 0 for the query's own token,
near 1 for the first (arXiv 2305.19466, Figure 7). Of equal weights the earliest key counts. Weights
are made a few queries at a time: T x T numbers of a long sequence are never held.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import batching
from nope.evals.attention_distance import (
    BUDGET,
    attention_weights,
    by_length,
    check_fits,
    rows_at_once,
)
from nope.evals.forward import Progress
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.variables import Variables

BINS = 20  # of 0.05, as in the paper


class Part(NamedTuple):
    """A sequence, int32 [T], whose queries from position `first` on are counted."""

    tokens: np.ndarray
    first: int


def run(
    config: ModelConfig,
    variables: Variables,
    parts: Sequence[Part],
    *,
    mesh: Mesh,
    bins: int = BINS,
    budget: int = BUDGET,
    progress: Progress = iter,
) -> Records:
    """Histograms over the counted queries of all sequences.

    Measures: `share` [layer, head, bin] of the queries, `distance` [layer, head], their mean. Bin b
    of B holds b / B <= distance < (b + 1) / B. budget: attention weights held at once on each part
    of the mesh. ValueError without a query, for fewer than one bin, and as
    `attention_distance.check_fits`.
    """
    if bins < 1:
        raise ValueError(f'bins is {bins}; accepted: at least 1')
    queries = sum(max(len(part.tokens) - part.first, 0) for part in parts)
    if not queries:
        raise ValueError('no sequence has a query that is counted')
    check_fits(config, [part.tokens for part in parts])
    counts_LNC, sums_LN = _counted(config, variables, parts, mesh, bins, budget, progress)
    return Records(
        attributes={
            'evaluation': 'attended_distance',
            'sequences': len(parts),
            'queries': queries,
            'n_layers': config.layers,
            'n_heads': config.heads,
        },
        measures={
            'share': Measure(counts_LNC / queries, ('layer', 'head', 'bin'), 'share'),
            'distance': Measure(sums_LN / queries, ('layer', 'head'), 'share of the context'),
        },
        coordinates={'bin': np.arange(bins) / bins},
    )


def _counted(
    config: ModelConfig,
    variables: Variables,
    parts: Sequence[Part],
    mesh: Mesh,
    bins: int,
    budget: int,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Queries in every bin [L, N, bins], and the sums of their distances [L, N]."""
    copies = sharding.batch_parts(mesh)
    counts = np.zeros((config.layers, config.heads, bins), np.int64)
    sums = np.zeros((config.layers, config.heads))
    sequences = [part.tokens for part in parts]
    groups = list(by_length(sequences, None, config.longest or sys.maxsize))
    for length, members in progress(groups):
        together = rows_at_once((config,), length, budget)
        size = batching.padded_rows(len(members), max(together // length, 1) * copies, copies)
        step = max(together * copies // size, 1)
        for start in range(0, len(members), size):
            some = [parts[i] for i in members[start : start + size]]
            tokens = batching.right_padded([part.tokens for part in some], size, length)
            first, end = np.zeros((2, size), np.int32)  # what fills up a batch has no queries
            first[: len(some)] = [part.first for part in some]
            end[: len(some)] = [len(part.tokens) for part in some]
            for found in _of_batch(config, variables, tokens, first, end, mesh, bins, step):
                counts += np.asarray(found[0])
                sums += np.asarray(found[1], np.float64)
    return counts, sums


def _of_batch(
    config: ModelConfig,
    variables: Variables,
    tokens: np.ndarray,
    first: np.ndarray,
    end: np.ndarray,
    mesh: Mesh,
    bins: int,
    step: int,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """`histogram` of every `step` queries of a batch."""
    place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
    length = tokens.shape[1]
    with sharding.use(mesh):
        tokens_BT, lengths_B, *ends = map(place, (tokens, np.maximum(end, 1), first, end))
        for start in range(0, length, step):
            queries_R = jnp.arange(start, min(start + step, length), dtype=jnp.int32)
            weights = attention_weights(config, variables, tokens_BT, lengths_B, queries_R)
            yield sharding.fetch(histogram(weights, queries_R, *ends, bins))


@functools.partial(jax.jit, static_argnames='bins')
def histogram(
    weights_LBNRS: jax.Array,
    queries_R: jax.Array,
    first_B: jax.Array,
    end_B: jax.Array,
    bins: int,
) -> tuple[jax.Array, jax.Array]:
    """Of the queries with first <= q < end: int32 [L, N, bins] how many have their distance in
    each bin, and float32 [L, N] the sums of the distances."""
    key_LBNR = jnp.argmax(weights_LBNRS, axis=-1).astype(jnp.int32)
    back_LBNR = queries_R - key_LBNR
    counted_BR = (queries_R >= first_B[:, None]) & (queries_R < end_B[:, None])
    # In whole numbers, so that no distance on an edge is rounded into another bin.
    bin_LBNR = back_LBNR * bins // (queries_R + 1)
    of_bin = (bin_LBNR[..., None] == jnp.arange(bins)) & counted_BR[:, None, :, None]
    distance_LBNR = back_LBNR.astype(jnp.float32) / (queries_R + 1).astype(jnp.float32)
    sums_LN = jnp.where(counted_BR[:, None], distance_LBNR, 0).sum(axis=(1, 3))
    return of_bin.sum(axis=(1, 3), dtype=jnp.int32), sums_LN
