"""Claims about the mean score of LongBench."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import LONGBENCH_NOPE, LONGBENCH_SHORTEST
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import apart, decisive, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.read.tables.score_row import AVERAGE, ScoreRow
from experiments.figures.roles import Roles, Shape, Undecided

BASE, ROTARY, HEADSCALE = 'base', 'rotary', 'headscale'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    ROTARY: Shape.ONE,
    HEADSCALE: Shape.BY_MULTIPLE,  # of the length of its search
}


def _nope(roles: Roles[ScoreRow]) -> Measured:
    difference = Interval.of(apart(_mean(roles[BASE]), _mean(roles[ROTARY])))
    measured = {'nope_minus_rope_points': difference.stated()}
    holds = difference.above(0, LONGBENCH_NOPE.thresholds['points'])
    return measured, holds, (number('NoPE - RoPE, mean of 16 tasks', difference, 'points'),)


def _shortest(roles: Roles[ScoreRow]) -> Measured:
    searches = roles.by_multiple(HEADSCALE)
    if len(searches) < 2:
        raise Undecided(f'the role {HEADSCALE!r} has one search, to compare take two or more')
    shortest, *longer = searches
    ahead = {
        f'that at {multiple:g} L': Interval.of(
            apart(_mean(searches[shortest]), _mean(searches[multiple]))
        )
        for multiple in longer
    }
    margin = LONGBENCH_SHORTEST.thresholds['points']
    holds = intervals.every(found.above(0, margin) for found in ahead.values())
    measured = {'shortest_minus_longer_points': intervals.stated(ahead), 'shortest': shortest}
    name = f'HeadScale at {shortest:g} L - best longer'
    return measured, holds, decisive(name, ahead, 'points', highest=False)


def _mean(row: ScoreRow) -> np.ndarray:
    """[S], of all tasks; Undecided where it was not measured."""
    row.mean(AVERAGE.key)
    return row.scores[AVERAGE.key]


_WITHIN = (
    f'a difference of at most {LONGBENCH_NOPE.thresholds["points"]:g} points decides nothing, and '
    f'{intervals.RULE}'
)
RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(LONGBENCH_NOPE, f'The mean of NoPE is above that of RoPE; {_WITHIN}.', _nope),
    Rule(
        LONGBENCH_SHORTEST,
        'The mean with HeadScale searched at the shortest length is above that with every longer '
        f'search; {_WITHIN}.',
        _shortest,
    ),
)
