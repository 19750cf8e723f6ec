"""Claims about NTK and YaRN without training, decided by losses by sequence length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import BETWEEN_NTK_AND_YARN, FACTORS, YARN_FLAT
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval
from experiments.figures.read.factor_method import Method
from experiments.figures.read.length_group import Group, by_length
from experiments.figures.roles import Roles, Shape, Undecided

NTK, YARN, HEADSCALE = 'ntk', 'yarn', 'headscale'
METHODS: Mapping[str, Shape] = {NTK: Shape.ONE, YARN: Shape.ONE}  # of curves with a grid
GROUPS: Mapping[str, Shape] = {HEADSCALE: Shape.BY_MULTIPLE}  # of curves without one

BEST, SINGLE = 'best factor for each length', 'one factor for all lengths'
TAIL = 'loss of the last L/2 positions'

Curves = Roles[Any]  # a `Method` where a curve has a grid, else a `Group`


def _factors(roles: Curves) -> Measured:
    """The factors and their losses: a reading, nothing to decide."""
    methods = [m for m in roles.players.values() if isinstance(m, Method)]
    if not methods:
        raise Undecided('no curve has a grid of factors')
    measured = {
        m.label: {
            'factors': list(m.factors),
            'factor_for_each_length': by_length(m.multiples, np.array(m.factors_per_length)),
            'factor_for_all_lengths': m.factor_overall,
            'loss_window_nats': {
                BEST: by_length(m.multiples, m.best('loss_window').mean(axis=0)),
                SINGLE: by_length(m.multiples, m.single('loss_window').mean(axis=0)),
            },
        }
        for m in methods
    }
    numbers = [number(f'{m.label}: factor for all lengths', m.factor_overall) for m in methods]
    return measured, None, tuple(numbers)


def _yarn_flat(roles: Curves) -> Measured:
    ntk, yarn = _method(roles, NTK), _method(roles, YARN)
    start = ntk.reported[0].at(1)
    if start is None:
        raise Undecided('windows of L were not measured')
    longest = int(np.argmax(ntk.multiples))
    unextended = _unextended(ntk).loss_tail[:, start]
    rises = {
        which: {m.label: chosen(m, 'loss_tail')[:, longest] - unextended for m in (yarn, ntk)}
        for which, chosen in ((BEST, Method.best), (SINGLE, Method.single))
    }
    measured = {
        'longest_in_L': ntk.multiples[longest],
        'rise_from_L_to_longest_nats': {
            which: intervals.stated({name: Interval.of(rise) for name, rise in found.items()})
            for which, found in rises.items()
        },
    }
    limit, best = YARN_FLAT.thresholds['nats'], rises[BEST]
    flat = Interval.of(best[yarn.label]).below(limit)
    apart = Interval.of(best[ntk.label] - best[yarn.label]).above(limit)
    numbers = (
        number('YaRN rises by', best[yarn.label], 'nats'),
        number('NTK by', best[ntk.label], 'nats'),
    )
    return measured, intervals.every((flat, apart)), numbers


def _between(roles: Curves) -> Measured:
    scaled: list[Group] = list(roles.by_multiple(HEADSCALE).values())
    methods = {role: _method(roles, role) for role in (NTK, YARN) if roles.get(role)}
    if not methods:
        raise Undecided(f'no curve has one of the roles {NTK!r}, {YARN!r}')
    longest = int(np.argmax(scaled[0].multiples))
    head = min(scaled, key=lambda g: float(g.loss_tail[:, longest].mean()))
    differences = {
        role: head.loss_tail - method.best('loss_tail') for role, method in methods.items()
    }
    ends = {role: Interval.of(values[:, longest]) for role, values in differences.items()}
    measured = {
        'headscale': head.label,
        'headscale_minus_method_nats': {
            role: by_length(head.multiples, values.mean(axis=0))
            for role, values in differences.items()
        },
        'at_the_longest_nats': intervals.stated(ends),
    }
    sides, margin = {NTK: Interval.below, YARN: Interval.above}, BETWEEN_NTK_AND_YARN.thresholds
    verdicts = (sides[role](found, 0, margin['nats']) for role, found in ends.items())
    names = {NTK: 'NTK', YARN: 'YaRN'}
    numbers = [number(f'HeadScale - {names[role]}', end, 'nats') for role, end in ends.items()]
    return measured, intervals.every(verdicts), tuple(numbers)


def _method(roles: Curves, role: str) -> Method:
    return roles[role]


def _unextended(method: Method) -> Group:
    """The model as it was trained, which is the method with factor 1. Undecided without it."""
    if 1 not in method.factors:
        raise Undecided(
            f'the grid of {method.label!r} has no factor 1, the model as it was trained'
        )
    return method.reported[method.factors.index(1)]


RULES: tuple[Rule[Curves], ...] = (
    Rule(
        FACTORS,
        'Factors chosen by the mean loss over windows other than those whose losses are given.',
        _factors,
    ),
    Rule(
        YARN_FLAT,
        f'From that of the model as trained at L to the longest length the {TAIL} rises by less '
        f'than {YARN_FLAT.thresholds["nats"]} nats with YaRN, and by that much more with dynamic '
        f'NTK, both with the best factor for each length; {intervals.RULE}.',
        _yarn_flat,
    ),
    Rule(
        BETWEEN_NTK_AND_YARN,
        f'At the longest length the {TAIL} with HeadScale lies below NTK and above YaRN, those of '
        'them that are drawn, each with its best factor for each length (of several HeadScale '
        'curves the lowest there); a difference of at most '
        f'{BETWEEN_NTK_AND_YARN.thresholds["nats"]} nats decides nothing, and {intervals.RULE}.',
        _between,
    ),
)
