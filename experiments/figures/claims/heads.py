"""Claims about single heads: how far they lie apart, their entropy against their multipliers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures import curves
from experiments.figures.claims.catalogue import ENTROPY_AGAINST_MULTIPLIER, HEADS_APART, LOW_LAYERS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.roles import Undecided
from nope.records import Records


def _apart(labelled: Mapping[str, Records]) -> Measured:
    """Spread of the heads of all layers at L and at the last position. labelled: models
    by their labels, evaluation 'positions'."""
    measured = {}
    found = False
    for label, records in labelled.items():
        bits = records['entropy'] * curves.BITS_PER_NAT
        length = int(records.attributes['train_length'])
        measured[label] = {
            f'bits at {name}': dict(
                zip(('min', 'median', 'max'), np.quantile(at, (0, 0.5, 1)).tolist(), strict=True)
            )
            for name, at in (('L', bits[..., length - 1]), ('the end', bits[..., -1]))
        }
        ends, bound = measured[label]['bits at L'], np.log2(length)
        concentrated = ends['min'] < HEADS_APART.thresholds['concentrated'] * bound
        found |= bool(concentrated and ends['max'] > HEADS_APART.thresholds['spread'] * bound)
    return measured, found


def _low_layers(share: np.ndarray) -> Measured:
    """share: [layers] mean entropy at the last position, of the bound log2(i)."""
    if len(share) < 2:
        raise Undecided('the model has one layer')
    low = max(1, len(share) // 3)
    measured = {
        'share_of_bound_by_layer': share.tolist(),
        'lowest_third': share[:low].mean(),
        'others': share[low:].mean(),
    }
    return measured, bool(share[:low].mean() > share[low:].mean())


def _correlations(shown: tuple[np.ndarray, np.ndarray]) -> Measured:
    """shown: multipliers and entropy in bits, [layers, N], of all layers, drawn or not."""
    multipliers, bits = shown
    by_layer = [curves.correlation(x, y) for x, y in zip(multipliers, bits, strict=True)]
    defined = [r for r in by_layer if r is not None]
    negative = sum(r < 0 for r in defined)
    centred = (multipliers - multipliers.mean(1, keepdims=True), bits - bits.mean(1, keepdims=True))
    pooled = curves.correlation(centred[0].ravel(), centred[1].ravel())
    measured = {
        'r_by_layer': by_layer,
        'layers_negative': negative,
        'layers_with_r': len(defined),
        'r_within_layers': pooled,
        'heads_per_layer': multipliers.shape[1],
        'entropy_std_by_layer_bits': bits.std(axis=1).tolist(),
    }
    return measured, pooled is not None and pooled < 0 and negative > len(defined) / 2


APART: tuple[Rule[Mapping[str, Records]], ...] = (
    Rule(
        HEADS_APART,
        'In one of the rows, over all layers, some head lies below '
        f'{HEADS_APART.thresholds["concentrated"]} and some head above '
        f'{HEADS_APART.thresholds["spread"]} of log2(L) at position L.',
        _apart,
    ),
)
LAYERS: tuple[Rule[np.ndarray], ...] = (
    Rule(
        LOW_LAYERS,
        'At the last position the mean entropy of the lowest third of the layers is a larger share '
        'of log2(i) than that of the others.',
        _low_layers,
    ),
)
CORRELATIONS: tuple[Rule[tuple[np.ndarray, np.ndarray]], ...] = (
    Rule(
        ENTROPY_AGAINST_MULTIPLIER,
        'r is negative in most layers, and over all heads with the mean of their layer taken off.',
        _correlations,
    ),
)
