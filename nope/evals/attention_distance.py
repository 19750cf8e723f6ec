"""Attention distance: Jensen-Shannon distances between two models' attention patterns by layer.

Of patterns P and Q over T queries, D_AT(P, Q) = (1 / T) sum_t JSD(P_t || Q_t), in nats, at most
ln 2; of models A and B at layer l, D(A, B) is the least D_AT over all pairs of a head of A and a
head of B (arXiv 2305.19466, section 5.2 and appendix F.7). The paper's released code swaps the
arguments of each divergence and visits pairs (i, j) with i < j alone; `released` is that number.

The weights of queries and keys are made a few queries at a time: T x T numbers of a long sequence
are never held.
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
from nope.model.shape import ChosenRows
from nope.records import Measure, Records
from nope.variables import Variables

BUDGET = 2**26  # attention weights of both models that are held at once, on each part of the mesh
_SMALLEST = float(np.finfo(np.float32).tiny)


class Model(NamedTuple):
    """A model that is measured."""

    config: ModelConfig
    variables: Variables


class Group(NamedTuple):
    """Sequences, int32 [T] each, that are averaged. length: what they have in common, and what the
    records name them by: of an example's problem, or the tokens of a window."""

    length: int
    sequences: Sequence[np.ndarray]


class _Found(NamedTuple):
    """Of every sequence [i]: least distances [i, L], those of the released code [i, L], and those
    of all pairs of heads [i, L, N, M]."""

    least: np.ndarray
    released: np.ndarray | None
    pairs: np.ndarray


def run(
    first: Model,
    second: Model,
    groups: Sequence[Group],
    *,
    mesh: Mesh,
    queries: int | None = None,
    budget: int = BUDGET,
    progress: Progress = iter,
) -> Records:
    """Distances between two models that read the same tokens, averaged over each group's sequences.

    Measures: `distance` and `released` [length, layer], nats; `pairs` [length, layer, head, other]
    D_AT of every pair of heads, averaged first; `examples` [length]. There is no `released` where
    heads leave no pair (i, j) with i < j. queries: of each sequence, evenly spaced up to its last
    token; None for all. budget: attention weights held at once on each part of the mesh.

    ValueError for models of different numbers of layers, for no sequence, and as `check_fits`.
    """
    if first.config.layers != second.config.layers:
        raise ValueError(
            f'the models have {first.config.layers} and {second.config.layers} layers; layers are '
            'compared one by one'
        )
    if queries is not None and queries < 1:
        raise ValueError(f'queries is {queries}; accepted: at least 1, or None for all')
    everything = [x for group in groups for x in group.sequences]
    if not everything or not all(group.sequences for group in groups):
        raise ValueError('there must be at least one group, and a sequence in each')
    for model in (first, second):
        check_fits(model.config, everything)
    found = _distances(first, second, everything, queries, budget, mesh, progress)
    ends = np.cumsum([len(group.sequences) for group in groups])[:-1]

    def mean(x: np.ndarray) -> np.ndarray:
        return np.stack([part.mean(axis=0) for part in np.split(x, ends)])

    axes = ('length', 'layer')
    released = {}
    if found.released is not None:
        released['released'] = Measure(mean(found.released), axes, 'nats')
    return Records(
        attributes={
            'evaluation': 'attention_distance',
            'queries': queries,
            'n_layers': first.config.layers,
            'n_heads': first.config.heads,
            'other_heads': second.config.heads,
        },
        measures={
            'distance': Measure(mean(found.least), axes, 'nats'),
            **released,
            'pairs': Measure(
                mean(found.pairs).astype(np.float32), (*axes, 'head', 'other'), 'nats'
            ),
            'examples': Measure(np.array([len(g.sequences) for g in groups]), ('length',), ''),
        },
        coordinates={'length': np.array([group.length for group in groups])},
    )


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


def chosen_queries(length: int, queries: int | None) -> np.ndarray:
    """Evenly spaced positions of `length`, int32, the last one among them."""
    if queries is None or queries >= length:
        return np.arange(length, dtype=np.int32)
    ends = (np.arange(1, queries + 1) * length) // queries
    return (ends - 1).astype(np.int32)


def rows_at_once(models: Iterable[ModelConfig], length: int, budget: int) -> int:
    """Queries of one sequence of `length` tokens whose weights in all models fit the budget."""
    each = sum(config.layers * config.heads for config in models) * length
    return max(budget // each, 1)


def _distances(
    first: Model,
    second: Model,
    sequences: Sequence[np.ndarray],
    queries: int | None,
    budget: int,
    mesh: Mesh,
    progress: Progress,
) -> _Found:
    """Of every sequence, in batches of those that are padded to the same length."""
    parts = sharding.batch_parts(mesh)
    layers, heads = first.config.layers, (first.config.heads, second.config.heads)
    pairs = np.zeros((len(sequences), layers, *heads))
    swapped = np.zeros_like(pairs)
    most = min(m.config.longest or sys.maxsize for m in (first, second))
    for length, members in progress(list(by_length(sequences, queries, most))):
        at = chosen_queries(length, queries)
        together = rows_at_once((first.config, second.config), length, budget)
        size = batching.padded_rows(len(members), max(together // len(at), 1) * parts, parts)
        for start in range(0, len(members), size):
            rows = members[start : start + size]
            tokens = batching.right_padded([sequences[i] for i in rows], size, length)
            lengths = np.ones(size, np.int32)
            lengths[: len(rows)] = [len(sequences[i]) for i in rows]
            sums = _batch(first, second, tokens, lengths, at, together, mesh)
            counts = (at < lengths[:, None]).sum(axis=1)[: len(rows), None, None, None]
            pairs[rows], swapped[rows] = (x[: len(rows)] / counts for x in sums)
    return _Found(pairs.min(axis=(2, 3)), _least_after(swapped), pairs)


def by_length(
    sequences: Sequence[np.ndarray], queries: int | None, most: int
) -> Iterator[tuple[int, list[int]]]:
    """Padded lengths, `most` at most, and the sequences of each. Sequences whose chosen queries
    follow from their lengths are not padded."""
    found: dict[int, list[int]] = {}
    for number, sequence in enumerate(sequences):
        n = len(sequence)
        length = n if queries is not None else min(batching.padded_length(n), most)
        found.setdefault(length, []).append(number)
    yield from sorted(found.items())


def _least_after(swapped: np.ndarray) -> np.ndarray | None:
    """The least over pairs (i, j) of heads with i < j, [i, L]; None where there are none."""
    later_NM = np.triu(np.ones(swapped.shape[2:], bool), k=1)
    return swapped[:, :, later_NM].min(axis=-1) if later_NM.any() else None


def _batch(
    first: Model,
    second: Model,
    tokens: np.ndarray,
    lengths: np.ndarray,
    at: np.ndarray,
    together: int,
    mesh: Mesh,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the chosen queries of a batch's divergences, true and swapped, [B, L, N, M]."""
    place = functools.partial(sharding.put, sharding=sharding.rows(mesh))
    step = max(together // len(tokens), 1)
    total: list[np.ndarray] = []
    with sharding.use(mesh):
        placed = place(tokens), place(lengths)
        for start in range(0, len(at), step):
            queries_R = jnp.asarray(at[start : start + step])
            weights = [attention_weights(m.config, m.variables, *placed, queries_R) for m in
                       (first, second)]  # fmt: skip
            sums = sharding.fetch(divergence_sums(*weights, placed[1], queries_R))
            found = [np.asarray(x, np.float64) for x in sums]
            total = found if not total else [a + b for a, b in zip(total, found, strict=True)]
    return total[0], total[1]


@functools.partial(jax.jit, static_argnums=0)
def attention_weights(
    config: ModelConfig,
    variables: Variables,
    tokens_BT: jax.Array,
    lengths_B: jax.Array,
    queries_R: jax.Array,
    heads_M: jax.Array | None = None,
) -> jax.Array:
    """Attention weights of chosen queries and heads on all keys, float32 [L, B, M, R, T].

    tokens_BT: int32, padded on the right, which no query of the sequence sees. lengths_B: tokens of
    each. queries_R: int32 positions. heads_M: int32 heads, the same in each layer; None for all.
    """
    length = lengths_B.astype(jnp.float32) if config.follows_length else None
    rows = ChosenRows(queries_R, heads_M)
    found = apply(config, variables, tokens_BT, length=length, rows=rows).rows
    assert found is not None
    return found


@jax.jit
def divergence_sums(
    p_LBNRS: jax.Array, q_LBMRS: jax.Array, lengths_B: jax.Array, queries_R: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Sums of the Jensen-Shannon divergence, and of that with swapped arguments, over the queries
    that lie inside their sequences, of every pair of heads: float32 [B, L, N, M], nats.

    `nope.evals.divergences` has both in float64. A weight below the smallest normal float32, which
    the swapped one divides by, counts as that.
    """
    inside_BR = (queries_R < lengths_B[:, None]).astype(jnp.float32)

    def of_layer(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        p_BNRS, q_BMRS = pair

        def of_head(p_BRS: jax.Array) -> tuple[jax.Array, jax.Array]:
            found = _divergences(p_BRS[:, None], q_BMRS)
            return tuple(jnp.einsum('BMR,BR->BM', x, inside_BR) for x in found)  # type: ignore[return-value]

        return jax.lax.map(of_head, p_BNRS.swapaxes(0, 1))

    sums_LNBM = jax.lax.map(of_layer, (p_LBNRS, q_LBMRS))
    true, swapped = (x.transpose(2, 0, 1, 3) for x in sums_LNBM)
    return true, swapped


def _divergences(p: jax.Array, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """JSD(p || q), and what the released code computes, over the last axis, where p and q are 0
    together without a term."""
    logs_p, logs_q, logs_m = (jnp.log(jnp.maximum(x, _SMALLEST)) for x in (p, q, (p + q) / 2))
    true = p * (logs_p - logs_m) + q * (logs_q - logs_m)
    swapped = (p + q) / 2 * (2 * logs_m - logs_p - logs_q)
    return true.sum(axis=-1) / 2, swapped.sum(axis=-1) / 2
