"""Claims of split heads about loss and keys, decided by a frontier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import keys
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import AT_MOST, Bound
from experiments.figures.read.frontier_point import FrontierPoint
from experiments.figures.roles import Roles, Shape, Undecided

# A model with split heads from its first step on, and one whose heads were split afterwards.
SPLIT, RETROFIT, ROPE = 'split', 'retrofit', 'rope'
ROLES: Mapping[str, Shape] = dict.fromkeys((SPLIT, RETROFIT, ROPE), Shape.ONE)

Points = Roles[FrontierPoint]


def _keeps_loss(claim: str, role: str) -> Rule[Points]:
    multiple = CLAIMS[claim].thresholds['multiple']

    def rise(points: Points) -> dict[str, np.ndarray]:
        loss = points[role].loss
        far, start = loss.at(multiple), loss.at(1)
        if start is None or far is None:
            raise Undecided(f'{loss.label!r} was not measured at L and at {multiple:g} L')
        return {'': loss.loss_window[:, far] - loss.loss_window[:, start]}

    return Rule(
        claim,
        f'Mean loss of windows of {multiple:g} L less that of windows of L',
        Every(rise, Bound(AT_MOST, 'nats'), f'rise from L to {multiple:g} L', alone=True),
        (role,),
    )


def _in_domain(claim: str, role: str) -> Rule[Points]:
    return Rule(
        claim,
        'Mean loss of windows of L less that of the RoPE model',
        Every(
            lambda points: {'': points[role].x - points[ROPE].x},
            Bound(AT_MOST, 'nats'),
            'split - RoPE at L',
            alone=True,
        ),
        (role, ROPE),
    )


def _keys(claim: str, field: str) -> Rule[Points]:
    def repeated(points: Points) -> Measured:
        group = getattr(points[SPLIT], field)
        if group is None:
            raise Undecided(f'the point of the role {SPLIT!r} has no {field}')
        return keys.repeated(group, claim)

    return Rule(claim, keys.said(claim), repeated, (SPLIT,), keys.limit(claim), '%')


RULES: tuple[Rule[Points], ...] = (
    _keeps_loss('keeps_loss', SPLIT),
    _in_domain('in_domain', SPLIT),
    _keeps_loss('retrofit_keeps_loss', RETROFIT),
    _in_domain('retrofit_in_domain', RETROFIT),
    _keys('keys_far', 'keys'),
    _keys('keys_four', 'four'),
)
