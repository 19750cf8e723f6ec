"""The claim about scores of commonsense tasks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.verdict import NEAR, Bound
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.roles import Roles, Shape

BASE, ROPE = 'base', 'rope'
ROLES: Mapping[str, Shape] = {BASE: Shape.ONE, ROPE: Shape.ONE}


def mean(row: ScoreRow) -> np.ndarray:
    """[S], of all tasks; Undecided where it was not measured."""
    row.mean(AVERAGE.key)
    return row.scores[AVERAGE.key]


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        'parity',
        'Mean of the seven scores of NoPE less that of RoPE',
        Every(
            lambda roles: {'': apart(mean(roles[BASE]), mean(roles[ROPE]))},
            Bound(NEAR, 'points'),
            'NoPE - RoPE, mean of seven tasks',
            'points',
        ),
        (BASE, ROPE),
    ),
)
