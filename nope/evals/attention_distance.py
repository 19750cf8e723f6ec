"""Attention distance: Jensen-Shannon distances between two models' attention patterns by layer.

Two patterns P and Q over T queries are D_AT(P, Q) = (1 / T) sum_t JSD(P_t || Q_t) apart, in nats,
at most ln 2. Two models are at layer l as far apart as their nearest pair of heads there (arXiv
2305.19466, section 5.2 and appendix F.7). The paper's released code swaps the arguments of each
divergence and visits pairs (i, j) with i < j alone; `released` is that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from nope import sharding
from nope.evals import attention_rows
from nope.evals.attention_rows import Model
from nope.evals.forward import Progress
from nope.records import Measure, Records
from nope.runtime.errors import OVERFLOWS
from nope.runtime.products import exact_einsum

_SMALLEST = float(np.finfo(np.float32).tiny)


class SequenceGroup(NamedTuple):
    """Sequences, int32 [T] each, that are averaged. length: names them in the records: that of the
    example's problem, or the tokens of the window."""

    length: int
    sequences: Sequence[np.ndarray]


def run(
    first: Model,
    second: Model,
    groups: Sequence[SequenceGroup],
    *,
    mesh: Mesh,
    queries: int | None = None,
    progress: Progress = iter,
) -> Records:
    """Distances between two models that read the same tokens, averaged over each group's sequences.

    Measures: `distance` and `released` [length, layer], nats; `pairs` [length, layer, head, other]
    D_AT of every pair of heads, averaged first; `examples` [length]. There is no `released` where
    heads leave no pair (i, j) with i < j. queries: of each sequence, evenly spaced up to its last
    token; None for all.

    ValueError for models of different numbers of layers, for no sequence, and as
    `attention_rows.check_fits`.
    """
    if first.config.attention_layers != second.config.attention_layers:
        raise ValueError(
            f'the models have {first.config.attention_layers} and '
            f'{second.config.attention_layers} layers with attention; they are compared one by one'
        )
    if queries is not None and queries < 1:
        raise ValueError(f'queries is {queries}; accepted: at least 1, or None for all')
    everything = [x for group in groups for x in group.sequences]
    if not everything or not all(group.sequences for group in groups):
        raise ValueError('there must be at least one group, and a sequence in each')
    for model in (first, second):
        attention_rows.check_fits(model.config, everything)
    shape = len(everything), first.config.attention_layers, first.config.heads, second.config.heads
    pairs, swapped, counts = np.zeros(shape), np.zeros(shape), np.zeros((len(everything), 1, 1, 1))
    lengths = np.array([len(x) for x in everything])
    options: dict[str, Any] = {'queries': queries, 'progress': progress}
    with sharding.use(mesh):
        for rows in attention_rows.over((first, second), everything, mesh=mesh, **options):
            real = slice(len(rows.members))
            sums = sharding.fetch(divergence_sums(*rows.weights, rows.lengths_B, rows.queries_R))
            pairs[rows.members] += np.asarray(sums[0], np.float64)[real]
            swapped[rows.members] += np.asarray(sums[1], np.float64)[real]
            inside = np.asarray(rows.queries_R) < lengths[rows.members, None]
            counts[rows.members, 0, 0, 0] += inside.sum(axis=1)
    if np.isnan(pairs).any():
        raise ValueError(f'attention weights are NaN: {OVERFLOWS}')
    pairs, swapped = pairs / counts, swapped / counts
    ends = np.cumsum([len(group.sequences) for group in groups])[:-1]

    def mean(x: np.ndarray) -> np.ndarray:
        return np.stack([part.mean(axis=0) for part in np.split(x, ends)])

    axes = ('length', 'layer')
    released = {}
    later_NM = np.triu(np.ones(shape[2:], bool), k=1)
    if later_NM.any():
        least = swapped[:, :, later_NM].min(axis=-1)
        released['released'] = Measure(mean(least), axes, 'nats')
    return Records(
        attributes={
            'evaluation': 'attention_distance',
            'queries': queries,
            'n_layers': first.config.attention_layers,
            'n_heads': first.config.heads,
            'other_heads': second.config.heads,
        },
        measures={
            'distance': Measure(mean(pairs.min(axis=(2, 3))), axes, 'nats'),
            **released,
            'pairs': Measure(mean(pairs).astype(np.float32), (*axes, 'head', 'other'), 'nats'),
            'examples': Measure(np.array([len(g.sequences) for g in groups]), ('length',), ''),
        },
        coordinates={'length': np.array([group.length for group in groups])},
    )


@jax.jit
def divergence_sums(
    p_LBNRS: jax.Array, q_LBMRS: jax.Array, lengths_B: jax.Array, queries_R: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Sums of the Jensen-Shannon divergence of every pair of heads, and with swapped arguments.
    They are over the queries inside their sequences: float32 [B, L, N, M], nats. Where p and q are
    0 together there is no term.

    A weight below the smallest normal float32, which the swapped one divides by, counts as that.
    """
    inside_BR = (queries_R < lengths_B[:, None]).astype(jnp.float32)

    def of_layer(pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        p_BNRS, q_BMRS = pair

        def of_head(p_BRS: jax.Array) -> tuple[jax.Array, jax.Array]:
            p, q = p_BRS[:, None], q_BMRS
            logs_p, logs_q, logs_m = (
                jnp.log(jnp.maximum(x, _SMALLEST)) for x in (p, q, (p + q) / 2)
            )
            true = p * (logs_p - logs_m) + q * (logs_q - logs_m)
            swapped = (p + q) / 2 * (2 * logs_m - logs_p - logs_q)
            found = true.sum(axis=-1) / 2, swapped.sum(axis=-1) / 2
            return tuple(exact_einsum('BMR,BR->BM', x, inside_BR) for x in found)  # type: ignore[return-value]

        return jax.lax.map(of_head, p_BNRS.swapaxes(0, 1))

    sums_LNBM = jax.lax.map(of_layer, (p_LBNRS, q_LBMRS))
    true, swapped = (x.transpose(2, 0, 1, 3) for x in sums_LNBM)
    return true, swapped
