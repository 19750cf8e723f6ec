"""Claims about the ways to choose lambda, decided by losses against the length of the sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims import catalogue
from experiments.figures.claims.catalogue import (
    FAILS_PAST_SEARCHED,
    HEADSCALE_BEATS_UNIFORM,
    HEADSCALE_HURTS,
    ONE_SET,
    SAME_INSIDE,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.length_group import Group, by_length
from experiments.figures.roles import Roles, Shape, Undecided

BASE, UNIFORM, HEADSCALE, LOG_LENGTH = 'base', 'uniform', 'headscale', 'log_length'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    UNIFORM: Shape.ONE,  # the best multiplier for each length
    HEADSCALE: Shape.BY_MULTIPLE,
    LOG_LENGTH: Shape.ONE,
}

Groups = Roles[Group]


def _same_inside(roles: Groups) -> Measured:
    base, log = roles[BASE], roles[LOG_LENGTH]
    inside = base.multiples <= 1
    if not inside.any():
        raise Undecided('no length up to L was measured')
    difference = max(
        float(np.abs(a[:, inside] - b[:, inside]).max())
        for a, b in ((base.loss_window, log.loss_window), (base.loss_tail, log.loss_tail))
    )
    return {'largest_difference_nats': difference}, difference == 0


def _headscale_hurts(roles: Groups) -> Measured:
    base, searches = roles[BASE], roles.by_multiple(HEADSCALE)
    index = base.at(1)
    if index is None:
        raise Undecided('windows of L were not measured')
    costs = {
        g.label: g.loss_window[:, index] - base.loss_window[:, index] for g in searches.values()
    }
    measured = {label: _stated(cost) for label, cost in costs.items()}
    holds = all(bool((cost > 0).all()) for cost in costs.values())
    return {'headscale_minus_base_at_L_nats': measured}, holds


def _headscale_beats_uniform(roles: Groups) -> Measured:
    uniform = roles[UNIFORM]
    measured: dict[str, Any] = {}
    for multiple, g in roles.by_multiple(HEADSCALE).items():
        index = g.at(multiple)
        if index is not None:
            measured[g.label] = _stated(g.loss_window[:, index] - uniform.loss_window[:, index])
    if not measured:
        raise Undecided('no search of HeadScale has windows of its length')
    holds = all(m['mean'] < 0 for m in measured.values())
    return {'headscale_minus_uniform_nats': measured}, holds


def _fails_past_searched(roles: Groups) -> Measured:
    rises: dict[str, float] = {}
    for multiple, g in roles.by_multiple(HEADSCALE).items():
        target, twice = g.at(multiple), g.at(2 * multiple)
        if target is not None and twice is not None:
            rises[g.label] = float((g.loss_tail[:, twice] - g.loss_tail[:, target]).mean())
    if not rises:
        raise Undecided('no search of HeadScale has windows of its length and of twice that')
    limit = FAILS_PAST_SEARCHED.thresholds['nats']
    return {'rise_from_tuned_to_twice_nats': rises}, all(rise > limit for rise in rises.values())


def _one_set(roles: Groups) -> Measured:
    log = roles[LOG_LENGTH]
    others = [g.loss_window.mean(0) for g in roles.players.values() if g is not log]
    if not others:
        raise Undecided('no other curve is drawn')
    margin = log.loss_window.mean(0) - np.min(others, axis=0)
    measured = {'log_length_minus_best_other_nats': by_length(log.multiples, margin)}
    return measured, bool((margin <= ONE_SET.thresholds['nats']).all())


def _lowest(roles: Groups) -> Measured:
    """The lowest curve at each length, for both measures: a reading, nothing to decide."""
    groups = list(roles.players.values())
    if len(groups) < 2:
        raise Undecided('no other curve is drawn')
    measured: dict[str, Any] = {}
    for measure in ('loss_window', 'loss_tail'):
        losses = np.stack([getattr(g, measure).mean(axis=0) for g in groups])
        order = np.argsort(losses, axis=0, kind='stable')
        low = np.take_along_axis(losses, order, axis=0)
        measured[measure] = {
            f'{m:g} L': {
                'best': groups[order[0, i]].label,
                'ahead_of_next_nats': low[1, i] - low[0, i],
                'loss_nats': {g.label: losses[j, i] for j, g in enumerate(groups)},
            }
            for i, m in enumerate(groups[0].multiples)
        }
    return measured, None


def _stated(difference: np.ndarray) -> dict[str, Any]:
    """[seeds] in nats."""
    return {'mean': float(difference.mean()), 'by_seed': difference.tolist()}


RULES: tuple[Rule[Groups], ...] = (
    Rule(
        SAME_INSIDE,
        'log-length equals the base model exactly at every n <= L measured, for every seed.',
        _same_inside,
    ),
    Rule(
        HEADSCALE_HURTS,
        'HeadScale raises the mean loss of windows of length L for every seed.',
        _headscale_hurts,
    ),
    Rule(
        HEADSCALE_BEATS_UNIFORM,
        'At the length of its search HeadScale has the lower mean loss over the window, on '
        'average over seeds, than the best uniform multiplier for that length.',
        _headscale_beats_uniform,
    ),
    Rule(
        FAILS_PAST_SEARCHED,
        'The loss of the last L/2 positions at twice the length of the search exceeds that at the '
        f'length of the search by more than {FAILS_PAST_SEARCHED.thresholds["nats"]} nats.',
        _fails_past_searched,
    ),
    Rule(
        ONE_SET,
        'At every n the mean loss over the window with log-length is at most '
        f'{ONE_SET.thresholds["nats"]} nats above the best of the other curves (means over seeds).',
        _one_set,
    ),
    Rule(
        catalogue.LOWEST,
        'The lowest mean loss at each length n, over the window and over its last L/2 positions '
        '(means over seeds; at a tie the first curve is named).',
        _lowest,
    ),
)
