"""Normalised distance of the most attended key, as a histogram for each head.

The distance of query q (0-based) with weights a_qk is (q - argmax_k a_qk) / (q + 1) (arXiv
2305.19466, Figure 7). It is 0 for its own token and near 1 for the first. The earliest of equal
weights counts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import attention_rows
from nope.evals.attention_rows import Model
from nope.evals.forward import Progress
from nope.model import ModelConfig
from nope.records import Measure, Records
from nope.runtime.errors import OVERFLOWS
from nope.variables import Variables

BINS = 20  # of 0.05, as in the paper


class CountedSequence(NamedTuple):
    """A sequence, int32 [T], whose queries from position `first` on are counted."""

    tokens: np.ndarray
    first: int


def run(
    config: ModelConfig,
    variables: Variables,
    parts: Sequence[CountedSequence],
    *,
    mesh: Mesh,
    progress: Progress = iter,
) -> Records:
    """Histograms over the counted queries of all sequences.

    Measures: `share` [layer, head, bin] of the queries, `distance` [layer, head], their mean. Bin b
    of B holds b / B <= distance < (b + 1) / B. ValueError without a query, and as
    `attention_rows.check_fits`.
    """
    queries = sum(max(len(part.tokens) - part.first, 0) for part in parts)
    if not queries:
        raise ValueError('no sequence has a query that is counted')
    attention_rows.check_fits(config, [part.tokens for part in parts])
    counts_LNC = np.zeros((config.attention_layers, config.heads, BINS), np.int64)
    sums_LN = np.zeros((config.attention_layers, config.heads))
    given = [Model(config, variables)], [part.tokens for part in parts]
    with sharding.use(mesh):
        for rows in attention_rows.over(*given, mesh=mesh, progress=progress):
            # A surplus row has one token, and no query from there on.
            first = np.ones(len(rows.lengths_B), np.int32)
            first[: len(rows.members)] = [parts[i].first for i in rows.members]
            first_B = sharding.put(first, sharding=sharding.rows(mesh))
            counted = rows.weights[0], rows.queries_R, first_B, rows.lengths_B
            found = sharding.fetch(histogram(*counted, BINS))
            counts_LNC += np.asarray(found[0])
            sums_LN += np.asarray(found[1], np.float64)
    if np.isnan(sums_LN).any():
        raise ValueError(f'attention weights are NaN: {OVERFLOWS}')
    return Records(
        attributes={
            'evaluation': 'attended_distance',
            'sequences': len(parts),
            'queries': queries,
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
        },
        measures={
            'share': Measure(counts_LNC / queries, ('layer', 'head', 'bin'), 'share'),
            'distance': Measure(sums_LN / queries, ('layer', 'head'), 'share of the context'),
        },
        coordinates={'bin': np.arange(BINS) / BINS},
    )


@functools.partial(jax.jit, static_argnames='bins')
def histogram(
    weights_LBNRS: jax.Array, queries_R: jax.Array, first_B: jax.Array, end_B: jax.Array, bins: int
) -> tuple[jax.Array, jax.Array]:
    """Counts int32 [L, N, bins] of the distances in each bin, and their sums float32 [L, N], over
    the queries with first <= q < end. The sums are NaN with the weights."""
    key_LBNR = jnp.argmax(weights_LBNRS, axis=-1).astype(jnp.int32)
    back_LBNR = queries_R - key_LBNR
    counted_BR = (queries_R >= first_B[:, None]) & (queries_R < end_B[:, None])
    # In whole numbers, so that no distance on an edge is rounded into another bin.
    bin_LBNR = back_LBNR * bins // (queries_R + 1)
    of_bin = (bin_LBNR[..., None] == jnp.arange(bins)) & counted_BR[:, None, :, None]
    distance_LBNR = back_LBNR.astype(jnp.float32) / (queries_R + 1).astype(jnp.float32)
    distance_LBNR = jnp.where(jnp.isnan(weights_LBNRS).any(axis=-1), jnp.nan, distance_LBNR)
    sums_LN = jnp.where(counted_BR[:, None], distance_LBNR, 0).sum(axis=(1, 3))
    return of_bin.sum(axis=(1, 3), dtype=jnp.int32), sums_LN
