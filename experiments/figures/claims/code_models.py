"""Claims about encodings on code, decided by the loss at the ends of documents of several lengths.

Losses are means over the ranges of document lengths; perplexities are their exponentials.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles, Shape, Undecided

NOPE, ALIBI, ROPE = ENCODINGS = ('code_nope', 'code_alibi', 'code_rope')
# Groups of one encoding each, one for each range of document lengths.
ROLES: Mapping[str, Shape] = dict.fromkeys(ENCODINGS, Shape.SEVERAL)
NEAR = 0.02  # of a multiple of L, by which the length that is measured may differ

Groups = Roles[Group]


def _at(roles: Groups, role: str, multiple: float) -> np.ndarray:
    """[S] losses of the tail, means over the ranges, nats. Undecided where a range lacks them."""
    found = []
    for group in roles.several(role):
        index = int(np.argmin(np.abs(group.multiples - multiple)))
        if abs(group.multiples[index] - multiple) > NEAR:
            raise Undecided(f'windows of {multiple:g} L were not measured')
        found.append(group.loss_tail[:, index])
    return np.mean(found, axis=0)


def _rise(role: str, multiple: float, side: str, limit: str, what: str) -> Every[Groups]:
    return Every(
        lambda roles: {'': _at(roles, role, multiple) - _at(roles, role, 1.0)},
        Bound(side, limit),
        what,
    )


def _spread(roles: Groups) -> dict[str, np.ndarray]:
    found = {}
    for multiple in (0.5, 1.0):
        losses = np.stack([_at(roles, role, multiple) for role in ENCODINGS])
        found[f'{multiple:g} L'] = losses.max(axis=0) - losses.min(axis=0)
    return found


_MEANS = 'Losses of the last tokens of documents, means over the ranges of document lengths'

RULES: tuple[Rule[Groups], ...] = (
    Rule(
        'code_encodings_alike_inside',
        f'{_MEANS}: the highest of the three encodings less the lowest, at L/2 and at L',
        Every(_spread, Bound(BELOW, 'nats'), 'highest - lowest loss'),
        ENCODINGS,
    ),
    Rule(
        'rope_code_fails_at_once',
        f'{_MEANS}: rise from that at L to that at 1.37 L with RoPE',
        _rise(ROPE, 1.37, ABOVE, 'nats', 'rise over L, RoPE at 1.37 L'),
        ENCODINGS,
    ),
    Rule(
        'nope_code_fails_later',
        _MEANS,
        (
            _rise(NOPE, 1.37, BELOW, 'flat_nats', 'rise over L, NoPE at 1.37 L'),
            _rise(NOPE, 2.0, ABOVE, 'nats', 'rise over L, NoPE at 2 L'),
        ),
        ENCODINGS,
    ),
    Rule(
        'alibi_code_degrades_slower',
        _MEANS,
        (
            Every(
                lambda roles: {'': _at(roles, NOPE, 2.5) - _at(roles, ALIBI, 2.5)},
                Bound(ABOVE, 0, 'margin_nats'),
                'NoPE - ALiBi at 2.5 L',
            ),
            _rise(ALIBI, 2.5, ABOVE, 'nats', 'rise of ALiBi to 2.5 L'),
        ),
        ENCODINGS,
    ),
)
