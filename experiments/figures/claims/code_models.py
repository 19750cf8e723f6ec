"""Claims about encodings on code, decided by the loss at the ends of documents of several lengths.

Losses are means over the ranges of document lengths; perplexities are their exponentials.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import headline, intervals
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.margins import every_above, every_below
from experiments.figures.claims.second_paper import (
    ALIBI_DEGRADES_SLOWER,
    CODE_ALIKE_INSIDE,
    NOPE_CODE_FAILS_LATER,
    ROTARY_CODE_FAILS_AT_ONCE,
)
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles, Shape, Undecided

NOPE, ALIBI, ROTARY = ENCODINGS = ('code_nope', 'code_alibi', 'code_rotary')
# Groups of one encoding each, one for each range of document lengths.
ROLES: Mapping[str, Shape] = dict.fromkeys(ENCODINGS, Shape.SEVERAL)
NEAR = 0.02  # of a multiple of L, by which the length that is measured may differ

Groups = Roles[Group]


def speaks_of(roles: Mapping[str, object]) -> bool:
    """True where some entry has a role of these, without which nothing here is decided."""
    return any(roles.get(role) for role in ROLES)


def _at(roles: Groups, role: str, multiple: float) -> np.ndarray:
    """[S] losses of the tail, means over the ranges, nats. Undecided where a range lacks them."""
    found = []
    for group in roles.several(role):
        index = int(np.argmin(np.abs(group.multiples - multiple)))
        if abs(group.multiples[index] - multiple) > NEAR:
            raise Undecided(f'windows of {multiple:g} L were not measured')
        found.append(group.loss_tail[:, index])
    return np.mean(found, axis=0)


def _rise(roles: Groups, role: str, multiple: float) -> Interval:
    return Interval.of(_at(roles, role, multiple) - _at(roles, role, 1.0))


def _alike_inside(roles: Groups) -> Measured:
    apart = {}
    for multiple in (0.5, 1.0):
        losses = np.stack([_at(roles, role, multiple) for role in ENCODINGS])
        apart[f'{multiple:g} L'] = Interval.of(losses.max(axis=0) - losses.min(axis=0))
    limit = CODE_ALIKE_INSIDE.thresholds['nats']
    return every_below('highest_minus_lowest_nats', 'highest - lowest loss', apart, limit)


def _rotary_fails(roles: Groups) -> Measured:
    claim = ROTARY_CODE_FAILS_AT_ONCE.thresholds
    rises = {'rotary at 1.37 L': _rise(roles, ROTARY, 1.37)}
    return every_above('rise_over_L_nats', 'rise over L', rises, claim['nats'])


def _nope_fails_later(roles: Groups) -> Measured:
    claim = NOPE_CODE_FAILS_LATER.thresholds
    flat, failed = (_rise(roles, NOPE, multiple) for multiple in (1.37, 2.0))
    rises = {'NoPE at 1.37 L': flat, 'NoPE at 2 L': failed}
    holds = intervals.every([flat.below(claim['flat_nats']), failed.above(claim['nats'])])
    numbers = tuple(headline.number(f'rise over L, {at}', x, 'nats') for at, x in rises.items())
    return {'rise_over_L_nats': intervals.stated(rises)}, holds, numbers


def _alibi_slower(roles: Groups) -> Measured:
    claim = ALIBI_DEGRADES_SLOWER.thresholds
    apart = Interval.of(_at(roles, NOPE, 2.5) - _at(roles, ALIBI, 2.5))
    rise = _rise(roles, ALIBI, 2.5)
    found = {'NoPE - ALiBi at 2.5 L': apart, 'rise of ALiBi to 2.5 L': rise}
    holds = intervals.every([apart.above(0, claim['margin_nats']), rise.above(claim['nats'])])
    numbers = tuple(headline.number(what, values, 'nats') for what, values in found.items())
    return {'nats': intervals.stated(found)}, holds, numbers


_MEANS = 'Losses of the last tokens of documents are means over the ranges of document lengths'

RULES: tuple[Rule[Groups], ...] = (
    Rule(
        CODE_ALIKE_INSIDE,
        f'{_MEANS}: at L/2 and at L the highest of the three encodings is less than '
        f'{CODE_ALIKE_INSIDE.thresholds["nats"]} nats above the lowest; {intervals.RULE}.',
        _alike_inside,
    ),
    Rule(
        ROTARY_CODE_FAILS_AT_ONCE,
        f"{_MEANS}: rotary's at 1.37 L lies more than "
        f'{ROTARY_CODE_FAILS_AT_ONCE.thresholds["nats"]} nats above that at L; {intervals.RULE}.',
        _rotary_fails,
    ),
    Rule(
        NOPE_CODE_FAILS_LATER,
        f"{_MEANS}: NoPE's at 1.37 L lies less than "
        f'{NOPE_CODE_FAILS_LATER.thresholds["flat_nats"]} nats above that at L, and at 2 L more '
        f'than {NOPE_CODE_FAILS_LATER.thresholds["nats"]} nats; {intervals.RULE}.',
        _nope_fails_later,
    ),
    Rule(
        ALIBI_DEGRADES_SLOWER,
        f"{_MEANS}: at 2.5 L ALiBi's lies below NoPE's, where a difference of at most "
        f'{ALIBI_DEGRADES_SLOWER.thresholds["margin_nats"]} nats decides nothing, and more than '
        f'{ALIBI_DEGRADES_SLOWER.thresholds["nats"]} nats above its own at L; {intervals.RULE}.',
        _alibi_slower,
    ),
)
