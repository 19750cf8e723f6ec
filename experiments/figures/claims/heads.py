"""Claims about single heads: how far they lie apart, their entropy against their multipliers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.read import curves
from experiments.figures.roles import Undecided
from nope.records import Records

SHARES = CLAIMS['heads_apart'].thresholds  # of the bound log2(L)
NEAR = CLAIMS['low_layers'].thresholds['near']
R = CLAIMS['entropy_against_multiplier'].thresholds['r']


def _apart(labelled: Mapping[str, Records]) -> Measured:
    """Spread of the heads of all layers at L and at the last position. labelled: models
    by their labels, evaluation 'positions'."""
    measured = {}
    found = True
    lowest, highest = [], []  # of every row, as shares of the bound
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
        concentrated = ends['min'] < SHARES['concentrated'] * bound
        found &= bool(concentrated and ends['max'] > SHARES['spread'] * bound)
        lowest.append(100 * ends['min'] / bound)
        highest.append(100 * ends['max'] / bound)
    numbers = (
        number('of log2(L) the most concentrated head has', max(lowest), '%'),
        number('the most spread', min(highest), '%'),
    )
    return measured, found, numbers


def _low_layers(share: np.ndarray) -> Measured:
    """share: [layers] mean entropy at the last position, of the bound log2(i)."""
    if len(share) < 2:
        raise Undecided('the model has one layer')
    low = max(1, len(share) // 3)
    lowest, others = share[:low].mean(), share[low:].mean()
    measured = {'share_of_bound_by_layer': share.tolist(), 'lowest_third': lowest, 'others': others}
    numbers = (
        number('of log2(i) the lowest third of layers has', 100 * lowest, '%'),
        number('the others', 100 * others, '%'),
    )
    return measured, bool(lowest >= NEAR and lowest > others), numbers


@dataclasses.dataclass(frozen=True)
class Heads:
    """Searched multipliers of every layer and head, [layers, N], and the entropy under them.
    Without them it is `as_trained` at the same position."""

    multipliers: np.ndarray
    bits: np.ndarray
    as_trained: np.ndarray


def _correlations(heads: Heads) -> Measured:
    """Takes all layers, drawn or not. A larger multiplier lowers the entropy of its own head, so
    the entropy under it falls for any model. The entropy without it shows what the search found."""
    measured = {'under_the_multipliers': _correlation(heads.multipliers, heads.bits)}
    control = _correlation(heads.multipliers, heads.as_trained)
    pooled, by_layer = control['r_within_layers'], control['r_by_layer']
    negative = sum(r < 0 for r in by_layer if r is not None)
    defined = sum(r is not None for r in by_layer)
    if pooled is None or not defined:
        raise Undecided('multipliers or entropies do not vary within layers, or heads are too few')
    measured['as_trained'] = control | {'layers_negative': negative, 'layers_with_r': defined}
    limit = -R
    shown = measured['under_the_multipliers']['r_within_layers']
    numbers = (
        number('r without the multipliers', pooled, limits=(limit,), ends=(-1, 1)),
        number('layers with r below 0', 100 * negative / defined, '%'),
        number('r under them', shown, ends=(-1, 1)),
    )
    return measured, pooled < limit and negative > defined / 2, numbers


def _correlation(multipliers: np.ndarray, bits: np.ndarray) -> dict[str, Any]:
    centred = (multipliers - multipliers.mean(1, keepdims=True), bits - bits.mean(1, keepdims=True))
    return {
        'r_by_layer': [curves.correlation(x, y) for x, y in zip(multipliers, bits, strict=True)],
        'r_within_layers': curves.correlation(centred[0].ravel(), centred[1].ravel()),
        'heads_per_layer': multipliers.shape[1],
        'entropy_std_by_layer_bits': bits.std(axis=1).tolist(),
    }


APART: tuple[Rule[Mapping[str, Records]], ...] = (
    Rule(
        'heads_apart',
        'In every row, over all layers, some head lies below '
        f'{SHARES["concentrated"]} and some head above '
        f'{SHARES["spread"]} of log2(L) at position L.',
        _apart,
    ),
)
LAYERS: tuple[Rule[np.ndarray], ...] = (
    Rule(
        'low_layers',
        'At the last position the mean entropy of the lowest third of the layers is at least '
        f'{NEAR} of log2(i), and a larger share of it than that of the '
        'others.',
        _low_layers,
    ),
)
CORRELATIONS: tuple[Rule[Heads], ...] = (
    Rule(
        'entropy_against_multiplier',
        'Between the searched multipliers and the entropy of the same heads without them, r is '
        f'below \N{MINUS SIGN}{R} over all heads with the '
        'mean of their layer taken off, and negative in most layers. The entropy under the '
        'multipliers, which Figure 5 shows, falls with them by itself and is given beside it.',
        _correlations,
    ),
)
