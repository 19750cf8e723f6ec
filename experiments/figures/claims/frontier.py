"""Claims of split heads about loss and keys, decided by a frontier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims import keys
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.others import IN_DOMAIN, KEEPS_LOSS, KEYS_FAR, KEYS_FOUR
from experiments.figures.frontier_point import FrontierPoint
from experiments.figures.key_group import KeyGroup
from experiments.figures.roles import Roles, Shape, Undecided

SPLIT, ROTARY = 'split', 'rotary'
ROLES: Mapping[str, Shape] = {SPLIT: Shape.ONE, ROTARY: Shape.ONE}

Points = Roles[FrontierPoint]


def _keeps_loss(points: Points) -> Measured:
    loss = points[SPLIT].loss
    far, start = loss.at(KEEPS_LOSS.thresholds['multiple']), loss.at(1)
    if far is None:
        far = int(np.argmax(loss.multiples))
    if start is None or loss.multiples[far] <= 1:
        raise Undecided(f'{loss.label!r} was not measured at L and beyond it')
    rise = loss.loss_window[:, far] - loss.loss_window[:, start]
    measured = {'at': f'{loss.multiples[far]:g} L', 'rise_from_L_nats': _stated(rise)}
    numbers = (number(f'rise from L to {loss.multiples[far]:g} L', rise, 'nats'),)
    return measured, bool((rise <= KEEPS_LOSS.thresholds['nats']).all()), numbers


def _in_domain(points: Points) -> Measured:
    split, rotary = points[SPLIT], points[ROTARY]
    above = split.x - rotary.x
    measured = {'split_minus_rotary_at_L_nats': _stated(above)}
    numbers = (number('split - rotary at L', above, 'nats'),)
    return measured, bool((above <= IN_DOMAIN.thresholds['nats']).all()), numbers


def _asked(group: KeyGroup | None, what: str) -> KeyGroup:
    if group is None:
        raise Undecided(f'the point of the role {SPLIT!r} has no {what}')
    return group


def _stated(difference: np.ndarray) -> dict[str, Any]:
    """[seeds] in nats."""
    return {'mean': float(difference.mean()), 'by_seed': difference.tolist()}


RULES: tuple[Rule[Points], ...] = (
    Rule(
        KEEPS_LOSS,
        f'The mean loss of windows of {KEEPS_LOSS.thresholds["multiple"]:g} L, or of the longest '
        f'measured, exceeds that of windows of L by at most {KEEPS_LOSS.thresholds["nats"]} nats, '
        'for every seed.',
        _keeps_loss,
    ),
    Rule(
        IN_DOMAIN,
        'The mean loss of windows of L exceeds that of the rotary model by at most '
        f'{IN_DOMAIN.thresholds["nats"]} nats, for every seed.',
        _in_domain,
    ),
    Rule(KEYS_FAR, keys.FAR, lambda points: keys.far(_asked(points[SPLIT].keys, 'keys'))),
    Rule(KEYS_FOUR, keys.FOUR, lambda points: keys.four(_asked(points[SPLIT].four, 'four'))),
)
