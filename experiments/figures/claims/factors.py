"""Claims about NTK and YaRN without training, decided by losses by sequence length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval, stated
from experiments.figures.claims.verdict import ABOVE, BELOW, RULE, Bound, every
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
    if 1 not in ntk.factors:
        raise Undecided(f'the grid of {ntk.label!r} has no factor 1, the model as it was trained')
    as_trained = ntk.reported[ntk.factors.index(1)]
    start, longest = as_trained.at(1), int(np.argmax(ntk.multiples))
    if start is None:
        raise Undecided('windows of L were not measured')
    rises = {
        which: {
            m.label: Interval.of(
                chosen(m, 'loss_tail')[:, longest] - as_trained.loss_tail[:, start]
            )
            for m in (yarn, ntk)
        }
        for which, chosen in ((BEST, Method.best), (SINGLE, Method.single))
    }
    measured = {
        'longest_in_L': ntk.multiples[longest],
        'rise_from_L_to_longest_nats': {which: stated(found) for which, found in rises.items()},
    }
    flat, other = (rises[BEST][m.label] for m in (yarn, ntk))
    limit = CLAIMS['yarn_flat'].thresholds['nats']
    apart = Interval.of(np.subtract(other.by_seed, flat.by_seed))
    holds = every((Bound(BELOW, limit).holds(flat), Bound(ABOVE, limit).holds(apart)))
    numbers = (number('YaRN rises by', flat, 'nats'), number('NTK by', other, 'nats'))
    return measured, holds, numbers


def _ahead(role: str, side: str, name: str) -> Every[Curves]:
    """HeadScale, of several searches the lowest at the longest length, less a method there."""

    def find(roles: Curves) -> dict[str, np.ndarray]:
        scaled: list[Group] = list(roles.by_multiple(HEADSCALE).values())
        longest = int(np.argmax(scaled[0].multiples))
        head = min(scaled, key=lambda g: float(g.loss_tail[:, longest].mean()))
        return {'': (head.loss_tail - _method(roles, role).best('loss_tail'))[:, longest]}

    what = f'HeadScale - {name}'
    return Every(find, Bound(side, 0, 'nats'), what)


def _method(roles: Curves, role: str) -> Method:
    return roles[role]


RULES: tuple[Rule[Curves], ...] = (
    Rule(
        'factors',
        'Factors chosen by the mean loss over windows other than those whose losses are given.',
        _factors,
        (NTK,),
    ),
    Rule(
        'yarn_flat',
        f'From that of the model as trained at L to the longest length the {TAIL} rises by less '
        f'than {CLAIMS["yarn_flat"].thresholds["nats"]} nats with YaRN, and by that much more with '
        f'dynamic NTK, both with the best factor for each length; {RULE}.',
        _yarn_flat,
        (NTK, YARN),
    ),
    Rule(
        'between_ntk_and_yarn',
        f'The {TAIL} at the longest length with HeadScale, of several searches the lowest, less '
        'that of NTK and of YaRN, each with its best factor for the length',
        (_ahead(NTK, BELOW, 'NTK'), _ahead(YARN, ABOVE, 'YaRN')),
        (HEADSCALE, NTK, YARN),
    ),
)
