"""What the paper says of NTK and YaRN without training, tested on losses by sequence length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Claim
from experiments.figures.factor_method import Method
from experiments.figures.length_group import Group, by_length

NTK, YARN = 'NTK', 'YaRN'
BEST, SINGLE = 'best factor for each length', 'one factor for all lengths'
TAIL = 'loss of the last L/2 positions'


def from_curves(methods: Sequence[Method], groups: Sequence[Group]) -> list[Claim]:
    """Every claim that the curves can bear. NTK and YaRN are the first methods whose labels
    hold these words."""
    found = [chosen(methods), flatness(methods), against_headscale(methods, groups)]
    return [claim for claim in found if claim is not None]


def chosen(methods: Sequence[Method]) -> Claim | None:
    """The factors and their losses: a reading, nothing to decide."""
    if not methods:
        return None
    measured = {
        m.label: {
            'factors': list(m.factors),
            'factor_for_each_length': by_length(m.multiples, np.array(m.factors_per_length)),
            'factor_for_all_lengths': m.factor_overall,
            'loss_window_nats': {
                BEST: by_length(m.multiples, m.best('window').mean(axis=0)),
                SINGLE: by_length(m.multiples, m.single('window').mean(axis=0)),
            },
        }
        for m in methods
    }
    return Claim(
        None,
        'The factors of NTK and YaRN without training are found by grid search; neither their '
        'values nor the text they were found on are given.',
        measured,
        None,
        'Factors chosen by the mean loss over windows other than those whose losses are given.',
    )


def flatness(methods: Sequence[Method]) -> Claim | None:
    ntk, yarn = _named(methods, NTK), _named(methods, YARN)
    if ntk is None or yarn is None:
        return None
    start = ntk.reported[0].at(1)
    if start is None:
        return None
    longest = int(np.argmax(ntk.multiples))
    pair = (yarn, ntk)
    rises = {
        BEST: {m.label: _rise(m.best('tail'), start, longest) for m in pair},
        SINGLE: {m.label: _rise(m.single('tail'), start, longest) for m in pair},
    }
    return Claim(
        None,
        'Without training YaRN stays flat and dynamic NTK does not: PG19 perplexity at L, 2 L, '
        '4 L and 8 L 14.5, 14.5, 15.0 and 17.1 against 14.5, 14.9, 22.8 and 80.4, that is a rise '
        'to 8 L of 0.16 against 1.71 nats (Table 2).',
        {'longest_in_L': ntk.multiples[longest], 'rise_from_L_to_longest_nats': rises},
        rises[BEST][yarn.label] < rises[BEST][ntk.label],
        f'With the best factor for each length, the {TAIL} rises less with YaRN than with dynamic '
        'NTK from L to the longest length (mean over seeds).',
    )


def against_headscale(methods: Sequence[Method], groups: Sequence[Group]) -> Claim | None:
    scaled = [g for g in groups if g.is_headscale]
    others = {name: _named(methods, name) for name in (NTK, YARN)}
    if not scaled or not any(others.values()):
        return None
    longest = int(np.argmax(scaled[0].multiples))
    head = min(scaled, key=lambda g: float(g.tail[:, longest].mean()))
    differences: dict[str, np.ndarray] = {
        name: (head.tail - method.best('tail')).mean(axis=0)
        for name, method in others.items()
        if method is not None
    }
    signs: dict[str, Any] = {NTK: 'below NTK', YARN: 'above YaRN'}
    ends = {name: float(values[longest]) for name, values in differences.items()}
    return Claim(
        11,
        'At 8 L HeadScale is better than NTK without training (30.4 against 80.4 on PG19, 4.1 '
        'against 13.3 on proof-pile), weaker than YaRN without training (17.1; 3.6). At L and 2 L '
        'it is behind NTK too (PG19 18.3 against 14.5, 19.0 against 14.9).',
        {
            'headscale': head.label,
            'headscale_minus_method_nats': {
                name: by_length(head.multiples, values) for name, values in differences.items()
            },
        },
        ends.get(NTK, -1) < 0 < ends.get(YARN, 1),
        f'At the longest length the {TAIL} with HeadScale lies '
        f'{" and ".join(signs[name] for name in differences)}, each with its best factor for each '
        'length (means over seeds; of several HeadScale curves the lowest there).',
    )


def _rise(loss: np.ndarray, start: int, end: int) -> float:
    """Of [seeds, n], between two lengths, mean over seeds."""
    return float((loss[:, end] - loss[:, start]).mean())


def _named(methods: Sequence[Method], word: str) -> Method | None:
    return next((m for m in methods if word.lower() in m.label.lower()), None)
