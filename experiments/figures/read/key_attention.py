"""Attention of the query that must find a key, for every seed, read from its records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.given import (
    FigureInput,
    Measures,
    check_count,
    check_differ,
    check_options,
)
from experiments.figures.look import style
from experiments.figures.read import key_group
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.key_group import KeyGroup

PARTS = ('key', 'first', 'latest')  # of the weight; the others have the rest
AXES = ('length', 'layer', 'head')
MEASURES: Measures = {
    'key_attention': {
        'accuracy': ('length', 'depth'),
        'keys': ('length',),
        **dict.fromkeys((*PARTS, 'largest', 'range', 'multiplier'), AXES),
    }
}


@dataclasses.dataclass(frozen=True)
class KeyAttention:
    """One model, for every seed.

    - keys: its prompts, and the shares of them that it answers with the key.
    - weights: part -> [S, n, layer, head], means over prompts. seen: [n] tokens that a query sees.
    - largest, ranges, multipliers: [S, n, layer, head].
    - span: tokens that count as the latest.
    """

    keys: KeyGroup
    weights: Mapping[str, np.ndarray]
    seen: np.ndarray
    largest: np.ndarray
    ranges: np.ndarray
    multipliers: np.ndarray
    span: int

    @property
    def label(self) -> str:
        return self.keys.label

    @property
    def finders(self) -> list[tuple[int, int]]:
        """By seed the (layer, head) with the most weight on the key in prompts of up to L."""
        inside = self.keys.multiples <= 1
        mean_SLN = self.weights['key'][:, inside].mean(axis=1)
        heads = mean_SLN.shape[2]
        return [divmod(int(np.argmax(mean_LN)), heads) for mean_LN in mean_SLN]


def needs(name: str, options: Mapping[str, Any], most: int, more: tuple[str, ...] = ()) -> dict:
    """Records of `curves`, [{group, label}] with other keys `more`, at most so many."""
    curves = options['curves']
    check_count(name, 'curves', len(curves), min(most, len(style.COLORS)))
    for curve in curves:
        check_options(name, curve, ('group', 'label', *more), ('group', 'label'), 'curves')
    check_differ(name, 'labels of curves', [curve['label'] for curve in curves])
    return {f'{curve["group"]}/': 'key_attention' for curve in curves}


def read(given: FigureInput, group: str, label: str) -> KeyAttention:
    """ValueError where no prompt is of up to L, and where seeds differ in their prompts."""
    keys, found = key_group.read(given, group, label), BySeed.of(given, group)
    if keys.multiples[0] > 1:
        raise ValueError(
            f'figure {given.name!r}: the prompts of {group!r} are of {keys.lengths.tolist()} '
            f'tokens; the heads that find a key are chosen by some of up to L = {keys.train_length}'
        )
    return KeyAttention(
        keys=keys,
        weights={part: found.stacked(part) for part in PARTS},
        seen=np.array(found.shared(lambda r: r['keys'].tolist(), 'the tokens seen')),
        largest=found.stacked('largest'),
        ranges=found.stacked('range'),
        multipliers=found.stacked('multiplier'),
        span=found.shared(lambda r: int(r.attributes['span']), 'the latest tokens'),
    )
