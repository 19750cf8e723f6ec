"""Claims of split heads about loss and keys, decided by a frontier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims import keys
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import RULE
from experiments.figures.claims.listed import Listed
from experiments.figures.claims.others import (
    IN_DOMAIN,
    KEEPS_LOSS,
    KEYS_FAR,
    KEYS_FOUR,
    RETROFIT_IN_DOMAIN,
    RETROFIT_KEEPS_LOSS,
)
from experiments.figures.read.frontier_point import FrontierPoint
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.roles import Roles, Shape, Undecided

# A model with split heads from its first step on, and one whose heads were split afterwards.
SPLIT, RETROFIT, ROTARY = 'split', 'retrofit', 'rotary'
ROLES: Mapping[str, Shape] = dict.fromkeys((SPLIT, RETROFIT, ROTARY), Shape.ONE)

Points = Roles[FrontierPoint]


def _keeps_loss(claim: Listed, role: str) -> Rule[Points]:
    multiple, limit = claim.thresholds['multiple'], claim.thresholds['nats']

    def measure(points: Points) -> Measured:
        loss = points[role].loss
        far, start = loss.at(multiple), loss.at(1)
        if start is None or far is None:
            raise Undecided(f'{loss.label!r} was not measured at L and at {multiple:g} L')
        rise = loss.loss_window[:, far] - loss.loss_window[:, start]
        numbers = (number(f'rise from L to {multiple:g} L', rise, 'nats', (limit,)),)
        return {'rise_from_L_nats': _stated(rise)}, bool((rise <= limit).all()), numbers

    statement = (
        f'The mean loss of windows of {multiple:g} L exceeds that of windows of L by at most '
        f'{limit} nats, for every seed; {RULE}.'
    )
    return Rule(claim, statement, measure)


def _in_domain(claim: Listed, role: str) -> Rule[Points]:
    limit = claim.thresholds['nats']

    def measure(points: Points) -> Measured:
        above = points[role].x - points[ROTARY].x
        numbers = (number('split - rotary at L', above, 'nats', (limit,)),)
        measured = {'split_minus_rotary_at_L_nats': _stated(above)}
        return measured, bool((above <= limit).all()), numbers

    statement = (
        f'The mean loss of windows of L exceeds that of the rotary model by at most {limit} nats, '
        f'for every seed; {RULE}.'
    )
    return Rule(claim, statement, measure)


def _asked(group: KeyGroup | None, what: str) -> KeyGroup:
    if group is None:
        raise Undecided(f'the point of the role {SPLIT!r} has no {what}')
    return group


def _stated(difference: np.ndarray) -> dict[str, Any]:
    """[seeds] in nats."""
    return {'mean': float(difference.mean()), 'by_seed': difference.tolist()}


RULES: tuple[Rule[Points], ...] = (
    _keeps_loss(KEEPS_LOSS, SPLIT),
    _in_domain(IN_DOMAIN, SPLIT),
    _keeps_loss(RETROFIT_KEEPS_LOSS, RETROFIT),
    _in_domain(RETROFIT_IN_DOMAIN, RETROFIT),
    Rule(KEYS_FAR, keys.FAR, lambda points: keys.far(_asked(points[SPLIT].keys, 'keys'))),
    Rule(KEYS_FOUR, keys.FOUR, lambda points: keys.four(_asked(points[SPLIT].four, 'four'))),
)
