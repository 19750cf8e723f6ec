"""Claims about the mean score of LongBench."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.headline import apart
from experiments.figures.claims.scores import BASE, ROPE, mean
from experiments.figures.claims.verdict import ABOVE, Bound
from experiments.figures.read.tables.score_row import ScoreRow
from experiments.figures.roles import Roles, Shape, Undecided

HEADSCALE = 'headscale'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,
    ROPE: Shape.ONE,
    HEADSCALE: Shape.BY_MULTIPLE,  # of the length of its search
}


def _shortest(roles: Roles[ScoreRow]) -> dict[str, np.ndarray]:
    searches = roles.by_multiple(HEADSCALE)
    if len(searches) < 2:
        raise Undecided(f'the role {HEADSCALE!r} has one search, to compare take two or more')
    shortest, *longer = searches
    return {
        f'HeadScale at {shortest:g} L - best longer, that at {multiple:g} L': apart(
            mean(searches[shortest]), mean(searches[multiple])
        )
        for multiple in longer
    }


RULES: tuple[Rule[Roles[ScoreRow]], ...] = (
    Rule(
        'longbench_nope',
        'Mean of NoPE less that of RoPE',
        Every(
            lambda roles: {'': apart(mean(roles[BASE]), mean(roles[ROPE]))},
            Bound(ABOVE, 0, 'points'),
            'NoPE - RoPE, mean of 16 tasks',
            'points',
        ),
        (BASE, ROPE),
    ),
    Rule(
        'longbench_shortest',
        'Mean with HeadScale searched at the shortest length less that with every longer search',
        Every(_shortest, Bound(ABOVE, 0, 'points'), '', 'points', name='shortest - longer'),
        (HEADSCALE,),
    ),
)
