"""The claim about scores of commonsense tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.verdict import NEAR, Bound
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.roles import Roles, Shape, Undecided

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


def _parity(roles: Roles[ScoreRow]) -> dict[str, np.ndarray]:
    """Takes models that answer better than chance: others are alike whatever they are."""
    chance = sum(CHANCE.values()) / len(CHANCE)
    for row in (roles[BASE], roles[ROPE]):
        found, least = float(mean(row).mean()), chance + ERRORS * row.error
        if found < least:
            raise Undecided(
                f'{row.option["label"]!r} answers as by chance: {found:.1f} percent, which is '
                f'{chance:.1f}, less than {ERRORS:g} standard errors of {row.error:.1f} above'
            )
    return {'': apart(mean(roles[BASE]), mean(roles[ROPE]))}


def _errors(roles: Roles[ScoreRow]) -> dict[str, str]:
    both = float(np.hypot(roles[BASE].error, roles[ROPE].error))
    return {'': f'standard error by questions {both:.1f}'}


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        'parity',
        'Mean of the seven scores of NoPE less that of RoPE',
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
