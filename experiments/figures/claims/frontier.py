"""Claims of split heads about loss and keys, decided by a frontier."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import keys
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.verdict import ABOVE, AT_MOST, BELOW, Bound
from experiments.figures.read.frontier_point import FrontierPoint
from experiments.figures.read.length_group import check_windows
from experiments.figures.roles import Roles, Shape, Undecided

SPLIT, ROPE = 'split', 'rope'
# Lambda on split heads: one number a head, or one a model under several laws; and NAPE.
PER_HEAD, ONE_NUMBER, NAPE = 'per_head', 'one_number', 'nape'
# A hybrid whose local layers are state spaces, and one whose local layers have windows.
STATE_SPACE, WINDOW = 'state_space', 'window'
SAID: Mapping[str, str] = {
    PER_HEAD: 'split heads whose lambda is searched, a number a head',
    ONE_NUMBER: 'the same models with one number for all heads, searched at the same lengths',
    NAPE: 'NAPE',
    STATE_SPACE: 'state spaces beside NoPE',
    WINDOW: 'windows beside NoPE',
}
SHORT: Mapping[str, str] = {PER_HEAD: 'a number a head', STATE_SPACE: 'state spaces'}
ROLES: Mapping[str, Shape] = {
    **dict.fromkeys((SPLIT, ROPE, NAPE, STATE_SPACE, WINDOW), Shape.ONE),
    **dict.fromkeys((PER_HEAD, ONE_NUMBER), Shape.SEVERAL),  # in pairs, by their lengths of search
}

Points = Roles[FrontierPoint]
FAR = CLAIMS['keeps_loss'].thresholds['multiple']


def _rise(points: Points) -> dict[str, np.ndarray]:
    far_S, near_S = (_loss(points[SPLIT], multiple, 'loss_tail') for multiple in (FAR, 1.0))
    return {'': far_S - near_S}


def _less_rope(points: Points) -> dict[str, np.ndarray]:
    own, rope = points[SPLIT], points[ROPE]
    check_windows([own.loss, rope.loss])
    return {'': own.x - rope.x}


def _keys(claim: str, field: str) -> Rule[Points]:
    def repeated(points: Points) -> Measured:
        group = getattr(points[SPLIT], field)
        if group is None:
            raise Undecided(f'the point of the role {SPLIT!r} has no {field}')
        return keys.repeated(group, claim)

    return Rule(claim, keys.said(claim), repeated, (SPLIT,), keys.limit(claim), '%')


def _pairs(points: Points, role: str, rival: str) -> dict[str, tuple[FrontierPoint, FrontierPoint]]:
    """Label of a difference -> those with a role and what each is held against: that of its place,
    or the only one."""
    own, others = (
        points.several(name) if ROLES[name] is Shape.SEVERAL else [points[name]]
        for name in (role, rival)
    )
    others = others * len(own) if ROLES[rival] is Shape.ONE else others
    if len(own) != len(others):
        raise Undecided(f'{len(own)} points have the role {role!r} and {len(others)} {rival!r}')
    if len(own) == 1:
        return {f'less {others[0].label}': (own[0], others[0])}
    start = own[0].label.rpartition(', ')[0] + ', '  # the model under each search
    return {
        f'{one.label.removeprefix(start)} less {other.label.removeprefix(start)}': (one, other)
        for one, other in zip(own, others, strict=True)
    }


def _below(claim: str, role: str, rival: str) -> Rule[Points]:
    multiple = CLAIMS[claim].thresholds['multiple']

    def less(points: Points) -> dict[str, np.ndarray]:
        pairs = _pairs(points, role, rival)
        check_windows([point.loss for pair in pairs.values() for point in pair])
        return {
            name: _loss(one, multiple) - _loss(other, multiple)
            for name, (one, other) in pairs.items()
        }

    return Rule(
        claim,
        f'Mean loss of windows of {multiple:g} L of {SAID[role]}, less that of {SAID[rival]}',
        Every(less, Bound(BELOW, 0, 'nats'), f'loss at {multiple:g} L, {SHORT[role]}'),
        (role, rival),
    )


def _further(claim: str, role: str, rival: str) -> Rule[Points]:
    multiple = CLAIMS[claim].thresholds['multiple']

    def more(points: Points) -> dict[str, np.ndarray]:
        return {
            name: 100 * (_share(one, multiple) - _share(other, multiple))
            for name, (one, other) in _pairs(points, role, rival).items()
        }

    return Rule(
        claim,
        f'Single keys repeated at {multiple:g} L by {SAID[role]}, less those of {SAID[rival]}',
        Every(more, Bound(ABOVE, 0), f'keys at {multiple:g} L, {SHORT[role]}', unit='points'),
        (role, rival),
    )


def _loss(point: FrontierPoint, multiple: float, part: str = 'loss_window') -> np.ndarray:
    """[seeds] mean loss of windows of so many L or, loss_tail, of their last L / 2, nats."""
    index = point.loss.at(multiple)
    if index is None:
        raise Undecided(f'{point.label!r} was not measured at {multiple:g} L')
    return getattr(point.loss, part)[:, index]


def _share(point: FrontierPoint, multiple: float) -> np.ndarray:
    """[seeds] share of single keys repeated at so many L."""
    index = point.keys.at(multiple)
    if index is None:
        raise Undecided(f'{point.label!r} was not asked for keys at {multiple:g} L')
    if point.keys.needles != 1:
        raise Undecided(f'{point.label!r} was asked for {point.keys.asked}, not for a single key')
    return point.keys.shares[:, index]


RULES: tuple[Rule[Points], ...] = (
    Rule(
        'keeps_loss',
        f'Mean loss of the last L/2 positions of windows of {FAR:g} L less that of windows of L, '
        'which end at the same tokens',
        Every(_rise, Bound(AT_MOST, 'nats'), f'rise from L to {FAR:g} L'),
        (SPLIT,),
    ),
    Rule(
        'in_domain',
        'Mean loss of windows of L less that of the RoPE model',
        Every(_less_rope, Bound(AT_MOST, 'nats'), 'split - RoPE at L'),
        (SPLIT, ROPE),
    ),
    _keys('keys_far', 'keys'),
    _keys('keys_four', 'four'),
    _below('per_head_below_one', PER_HEAD, ONE_NUMBER),
    _further('per_head_further_than_one', PER_HEAD, ONE_NUMBER),
    _below('below_nape', PER_HEAD, NAPE),
    _further('further_than_nape', PER_HEAD, NAPE),
    _below('state_space_below_window', STATE_SPACE, WINDOW),
    _further('state_space_further_than_window', STATE_SPACE, WINDOW),
)
# Of figures of keys far beyond L alone.
REACH = tuple(rule for rule in RULES if rule.id == 'keys_far')
