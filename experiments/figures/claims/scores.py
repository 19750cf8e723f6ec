"""The claim about scores of commonsense tasks."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.figures.claims.catalogue import PARITY
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import apart, number
from experiments.figures.claims.intervals import RULE, Interval
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.roles import Roles, Shape

BASE, ROTARY = 'base', 'rotary'
ROLES: Mapping[str, Shape] = {BASE: Shape.ONE, ROTARY: Shape.ONE}


def _parity(roles: Roles[ScoreRow]) -> Measured:
    base, rotary = roles[BASE], roles[ROTARY]
    tasks = list(dict.fromkeys((AVERAGE.key, *base.scores)))
    differences = {task: base.mean(task) - rotary.mean(task) for task in tasks}
    difference = apart(base.scores[AVERAGE.key], rotary.scores[AVERAGE.key])
    holds = Interval.of(difference).near(0, PARITY.thresholds['points'])
    numbers = (number('NoPE - RoPE, mean of seven tasks', difference, 'points'),)
    return {'nope_minus_rope_points': differences}, holds, numbers


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        PARITY,
        f'The means of the seven scores differ by at most {PARITY.thresholds["points"]:g} point; '
        f'{RULE}.',
        _parity,
    ),
)
