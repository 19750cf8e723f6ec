"""Claims about the ways to choose lambda, decided by losses against the length of the sequence."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims import intervals, others
from experiments.figures.claims.catalogue import (
    FAILS_PAST_SEARCHED,
    HEADSCALE_BEATS_UNIFORM,
    HEADSCALE_HURTS,
    LONGER_SEARCH_SERVES_END,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.margins import every_above, every_below
from experiments.figures.claims.others import ONE_SET
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles, Shape, Undecided, told_apart

BASE, UNIFORM, HEADSCALE, LOG_LENGTH = 'base', 'uniform', 'headscale', 'log_length'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    UNIFORM: Shape.ONE,  # the best multiplier for each length
    HEADSCALE: Shape.BY_MULTIPLE,
    LOG_LENGTH: Shape.ONE,
}

Groups = Roles[Group]


def told(searches: Mapping[float, Group]) -> list[tuple[str, float, Group]]:
    """Label, multiple of L and curve of each search."""
    labels = told_apart({g.name: g.label for g in searches.values()})
    return [(labels[g.name], multiple, g) for multiple, g in searches.items()]


def _headscale_hurts(roles: Groups) -> Measured:
    base, searches = roles[BASE], roles.by_multiple(HEADSCALE)
    index = base.at(1)
    if index is None:
        raise Undecided('windows of L were not measured')
    costs = {
        name: Interval.of(g.loss_window[:, index] - base.loss_window[:, index])
        for name, _, g in told(searches)
    }
    margin = HEADSCALE_HURTS.thresholds['nats']
    return every_above(
        'headscale_minus_base_at_L_nats', 'smallest HeadScale - base at L', costs, 0, margin
    )


def _headscale_beats_uniform(roles: Groups) -> Measured:
    uniform = roles[UNIFORM]
    above = {
        name: Interval.of(g.loss_window[:, index] - uniform.loss_window[:, index])
        for name, multiple, g in told(roles.by_multiple(HEADSCALE))
        if (index := g.at(multiple)) is not None
    }
    if not above:
        raise Undecided('no search of HeadScale has windows of its length')
    margin = HEADSCALE_BEATS_UNIFORM.thresholds['nats']
    return every_below(
        'headscale_minus_uniform_nats', 'highest HeadScale - uniform', above, 0, margin
    )


def _fails_past_searched(roles: Groups) -> Measured:
    rises: dict[str, Interval] = {}
    for name, multiple, g in told(roles.by_multiple(HEADSCALE)):
        target, twice = g.at(multiple), g.at(2 * multiple)
        if target is not None and twice is not None:
            rises[name] = Interval.of(g.loss_tail[:, twice] - g.loss_tail[:, target])
    if not rises:
        raise Undecided('no search of HeadScale has windows of its length and of twice that')
    limit = FAILS_PAST_SEARCHED.thresholds['nats']
    return every_above(
        'rise_from_tuned_to_twice_nats', 'smallest rise to twice the length', rises, limit
    )


def _longer_search(roles: Groups) -> Measured:
    searches = roles.by_multiple(HEADSCALE)
    most = LONGER_SEARCH_SERVES_END.thresholds['factor']
    found: dict[str, Interval] = {}
    for (multiple, own), (longer, other) in itertools.pairwise(searches.items()):
        index = own.at(multiple)
        if longer / multiple <= most and index is not None:
            difference = other.loss_tail[:, index] - own.loss_tail[:, index]
            found[f'{longer:g} L - {multiple:g} L'] = Interval.of(difference)
    if not found:
        raise Undecided(f'no two searches of HeadScale are within a factor of {most:g}')
    margin = LONGER_SEARCH_SERVES_END.thresholds['nats']
    return every_below('longer_minus_own_nats', 'at the end, searched at', found, 0, margin)


def _one_set(roles: Groups) -> Measured:
    log = roles[LOG_LENGTH]
    others = [g.loss_window for g in roles.players.values() if g is not log]
    if not others:
        raise Undecided('no other curve is drawn')
    best = np.argmin(np.mean(others, axis=1), axis=0)  # of the means over seeds, at each length
    rivals = np.stack([others[j][:, i] for i, j in enumerate(best)], axis=1)
    above = {
        f'{m:g} L': Interval.of(log.loss_window[:, i] - rivals[:, i])
        for i, m in enumerate(log.multiples)
    }
    return every_below(
        'log_length_minus_best_other_nats',
        'highest log-length - best other',
        above,
        ONE_SET.thresholds['nats'],
    )


def _lowest(roles: Groups) -> Measured:
    """The lowest curve at each length, for both measures: a reading, nothing to decide."""
    groups = list(roles.players.values())
    if len(groups) < 2:
        raise Undecided('no other curve is drawn')
    if len({g.windows for g in groups}) > 1:
        raise Undecided('curves were measured on different windows')
    names = list(told_apart({g.name: g.label for g in groups}).values())
    measured: dict[str, Any] = {}
    for measure in ('loss_window', 'loss_tail'):
        losses = np.stack([getattr(g, measure).mean(axis=0) for g in groups])
        order = np.argsort(losses, axis=0, kind='stable')
        low = np.take_along_axis(losses, order, axis=0)
        measured[measure] = {
            f'{m:g} L': {
                'best': names[order[0, i]],
                'ahead_of_next_nats': low[1, i] - low[0, i],
                'loss_nats': {name: losses[j, i] for j, name in enumerate(names)},
            }
            for i, m in enumerate(groups[0].multiples)
        }
    far = int(np.argmax(groups[0].multiples))
    best = min(groups, key=lambda g: float(g.loss_window[:, far].mean()))
    place = f'lowest over windows of {groups[0].multiples[far]:g} L: {best.label}'
    return measured, None, (number(place, best.loss_window[:, far], 'nats'),)


RULES: tuple[Rule[Groups], ...] = (
    Rule(
        HEADSCALE_HURTS,
        'HeadScale raises the mean loss of windows of length L, for every search; a difference of '
        f'at most {HEADSCALE_HURTS.thresholds["nats"]} nats decides nothing, and {intervals.RULE}.',
        _headscale_hurts,
    ),
    Rule(
        HEADSCALE_BEATS_UNIFORM,
        'At the length of its search HeadScale has a lower mean loss over the window than the best '
        'uniform multiplier for that length, for every search; a difference of at most '
        f'{HEADSCALE_BEATS_UNIFORM.thresholds["nats"]} nats decides nothing, and {intervals.RULE}.',
        _headscale_beats_uniform,
    ),
    Rule(
        FAILS_PAST_SEARCHED,
        'The loss of the last L/2 positions at twice the length of the search exceeds that at the '
        f'length of the search by more than {FAILS_PAST_SEARCHED.thresholds["nats"]} nats, for '
        f'every search; {intervals.RULE}.',
        _fails_past_searched,
    ),
    Rule(
        ONE_SET,
        'At every n the mean loss over the window with log-length is less than '
        f'{ONE_SET.thresholds["nats"]} nats above that of the best other curve, by means over '
        f'seeds; {intervals.RULE}.',
        _one_set,
    ),
    Rule(
        others.LOWEST,
        'The lowest mean loss at each length n, over the window and over its last L/2 positions '
        '(means over seeds; at a tie the first curve is named).',
        _lowest,
    ),
    Rule(
        LONGER_SEARCH_SERVES_END,
        'In windows as long as those of a search the last L/2 positions have a lower loss under '
        'the multipliers of the next longer search, wherever that is longer by a factor of at most '
        f'{LONGER_SEARCH_SERVES_END.thresholds["factor"]:g} (the paper: 1.125); a difference of at '
        f'most {LONGER_SEARCH_SERVES_END.thresholds["nats"]} nats decides nothing, and '
        f'{intervals.RULE}.',
        _longer_search,
    ),
)
