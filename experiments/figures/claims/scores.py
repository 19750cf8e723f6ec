"""The claim about scores of commonsense tasks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import NEAR, Bound
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.roles import Roles, Shape

BASE, ROPE = 'base', 'rope'
# Percent right of who knows nothing: one of the choices, and BoolQ's more frequent answer.
CHANCE: Mapping[str, float] = {
    **dict.fromkeys(('arc_challenge', 'arc_easy', 'hellaswag', 'openbookqa'), 25.0),
    **dict.fromkeys(('piqa', 'winogrande'), 50.0),
    'boolq': 62.2,
}
ERRORS = 2.0  # standard errors of a mean score between it and chance
ROLES: Mapping[str, Shape] = {BASE: Shape.ONE, ROPE: Shape.ONE}


def mean(row: ScoreRow) -> np.ndarray:
    """[S], of all tasks; Undecided where it was not measured."""
    row.mean(AVERAGE.key)
    return row.scores[AVERAGE.key]


BY_CHANCE = sum(CHANCE.values()) / len(CHANCE)


def _parity(roles: Roles[ScoreRow]) -> dict[str, Interval]:
    """Models that answer as by chance decide nothing: they are alike whatever they are."""
    found = Interval.of(apart(mean(roles[BASE]), mean(roles[ROPE])))
    return {'': dataclasses.replace(found, decides=found.decides and not _idle(roles))}


def _idle(roles: Roles[ScoreRow]) -> list[str]:
    """Labels of the models that answer as by chance."""
    both = (roles[BASE], roles[ROPE])
    return [r.option['label'] for r in both if mean(r).mean() < BY_CHANCE + ERRORS * r.error]


def _errors(roles: Roles[ScoreRow]) -> dict[str, str]:
    both = float(np.hypot(roles[BASE].error, roles[ROPE].error))
    idle = ''.join(f'; {label} answers as by chance' for label in _idle(roles))
    return {'': f'standard error by questions {both:.1f}{idle}'}


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        'parity',
        f'Mean of the seven scores of NoPE less that of RoPE, both {ERRORS:g} standard errors '
        f'above chance, {BY_CHANCE:.1f} %',
        Every(
            _parity,
            Bound(NEAR, 'points'),
            'NoPE - RoPE, mean of seven tasks',
            'points',
            notes=_errors,
        ),
        (BASE, ROPE),
    ),
)
