"""Claims about the best multiplier by position over seeds: intervals, and fits that say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.figures.claims import fits
from experiments.figures.claims.decide import decide
from experiments.figures.claims.decided import Decided
from experiments.figures.read.fit_panel import FitPanel
from experiments.figures.seeds import over_seeds

L, T = 32, 128


def panel(title: str = '', a: float = 0.4, r2: float = 0.9, hurts: float = 0.0, rise: float = 0.5):
    """The multiplier 1.8 costs `hurts` inside L; with the best one the loss rises by `rise`."""
    loss = np.stack([np.full(T, 1.0), np.full(T, 1.0 + hurts)])
    best = np.where(np.arange(T) < L, 1.0, 1.0 + rise)
    positions = np.arange(1, T + 1)
    facts = {'seed': 0, 'train_tokens': 1000, 'best_multiplier_window': 1.2}
    multipliers, chosen = np.array([1.0, 1.8]), np.full(T, 1.2)
    return FitPanel('grid', title, facts, L, positions, multipliers, loss, best, chosen, a, r2)


def claim(name: str, *panels_S: list[FitPanel]) -> Decided:
    """Of seeds that are drawn one by one."""
    found = over_seeds([decide(fits.RULES, panels) for panels in panels_S])
    return next(claim for claim in found if claim.id == name)


@pytest.mark.parametrize(
    ('by_seed', 'verdict'),
    [
        ((0.30, 0.31, 0.32), 'holds'),
        ((0.011, 0.012, 0.30), 'undecided'),  # each above 0.01; the interval begins below 0
        ((0.001, 0.002, 0.003), 'does not hold'),
        ((0.011,), 'holds'),
    ],
)
def test_what_holds_for_every_seed_is_open_where_the_interval_has_the_limit(by_seed, verdict):
    assert claim('uniform_hurts', *([panel(hurts=x)] for x in by_seed)).verdict == verdict


def test_a_rise_of_every_seed_is_held_against_its_interval_too():
    assert claim('uniform_not_flat', *([panel(rise=x)] for x in (0.4, 0.5, 0.6))).holds is True
    assert claim('uniform_not_flat', *([panel(rise=x)] for x in (0.2, 0.2, 3.0))).holds is None


def test_a_fit_that_explains_little_leaves_the_slope_of_the_others_decided():
    """Its own interval contains a limit."""
    early = (0.11, 0.224, 0.19)
    seeds = [
        [panel('early', a, r2=0.3), panel('late', 0.55 + s / 100)] for s, a in enumerate(early)
    ]
    assert claim('fit_slope', *seeds).verdict == 'does not hold'
    assert claim('fit_slope', *([early] for early, _ in seeds)).verdict == 'undecided'
