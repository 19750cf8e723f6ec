"""Claims about the best uniform multiplier by position, decided by grids of multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.claims import intervals
from experiments.figures.claims.catalogue import (
    FIT_BUDGET,
    FIT_FORM,
    FIT_SLOPE,
    UNIFORM_HURTS,
    UNIFORM_NOT_FLAT,
)
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import Number, number
from experiments.figures.read import curves
from experiments.figures.read.fit_panel import FitPanel
from experiments.figures.roles import Undecided

Panels = Sequence[FitPanel]


def _form(panels: Panels) -> Measured:
    measured = {}
    for p in panels:
        multiples = [m for m in (1, 2, 4, 8) if m * p.train_length <= p.positions[-1]]
        measured[p.title] = {
            'a': p.a,
            'r2': p.r2,
            'fit': {f'{m} L': 1 + p.a * math.log(m) for m in multiples},
            'best_multiplier': {
                f'{m} L': p.best_multiplier[m * p.train_length - 1] for m in multiples
            },
            'yarn_formula': {f'{m} L': (1 + 0.1 * math.log(m)) ** 2 for m in multiples},
            'best_multiplier_whole_window': p.facts['best_multiplier_window'],
        }
    least = FIT_FORM.thresholds['r2']
    numbers = [number(_of('R^2', p), p.r2, ends=(-math.inf, 1)) for p in panels]
    holds = all(p.a > 0 and _explains(p, least) for p in panels)
    return measured, holds, tuple(numbers)


def _slope(panels: Panels) -> Measured:
    low, high, least = (FIT_SLOPE.thresholds[k] for k in ('low', 'high', 'r2'))
    holds = intervals.every(low <= p.a <= high if _explains(p, least) else None for p in panels)
    return {p.title: p.a for p in panels}, holds, _slopes(panels, (low, high))


def _budget(panels: Panels) -> Measured:
    # Of an imported model it is not known.
    known = [p for p in panels if p.facts['train_tokens'] is not None]
    ordered = sorted(known, key=lambda p: p.facts['train_tokens'])
    if len({p.facts['train_tokens'] for p in ordered}) < 2:
        raise Undecided('the panels are not of two known amounts of training')
    measured = {
        p.title: {'train_tokens': p.facts['train_tokens'], 'a': p.a, 'r2': p.r2} for p in ordered
    }
    fewest, most = ordered[0], ordered[-1]
    least, margin = FIT_BUDGET.thresholds['r2'], FIT_BUDGET.thresholds['a']
    holds = None
    if _explains(fewest, least) and _explains(most, least):
        holds = intervals.above(most.a - fewest.a, 0, margin)
    return measured, holds, _slopes((fewest, most))


def _uniform_hurts(panels: Panels) -> Measured:
    """The grid at positions inside L, for the multipliers nearest to the paper's."""
    measured: dict[str, Any] = {}
    largest: dict[str, float] = {}
    for p in panels:
        if p.base_loss is None or p.multipliers.max() <= 1:
            continue
        inside = p.positions <= p.train_length
        change = (p.loss - p.base_loss)[:, inside].mean(axis=1)
        near = sorted(
            {int(np.abs(p.multipliers - s).argmin()) for s in UNIFORM_HURTS.numbers.values()}
        )
        near = [i for i in near if p.multipliers[i] > 1]
        measured[p.title] = {f'{p.multipliers[i]:g}': change[i] for i in near}
        what = f'multiplier {p.multipliers[near[-1]]:g} - none over (0, L]' if near else 'none'
        largest[_of(what, p)] = change[near[-1]] if near else 0.0
    if not measured:
        raise Undecided('no grid holds 1 and a multiplier above it')
    limit = UNIFORM_HURTS.thresholds['nats']
    numbers = [number(what, change, 'nats') for what, change in largest.items()]
    holds = all(change > limit for change in largest.values())
    return {'change_inside_L_nats': measured}, holds, tuple(numbers)


def _not_flat(panels: Panels) -> Measured:
    """Of losses that are the least of the grid at each position."""
    rises: dict[str, float] = {}
    for p in panels:
        length, end = p.train_length, int(p.positions[-1])
        if end < 1.5 * length:
            raise Undecided(f'{p.record!r} was measured up to {end / length:g} L, not to 1.5 L')
        ends = [
            curves.mean_between(p.best_loss, p.positions, high - length / 2, high)
            for high in (length, end)
        ]
        rises[_of(f'rise to {end / length:g} L', p)] = ends[1] - ends[0]
    limit, margin = (UNIFORM_NOT_FLAT.thresholds[k] for k in ('nats', 'margin'))
    holds = intervals.every(intervals.above(rise, limit, margin) for rise in rises.values())
    numbers = [number(what, rise, 'nats') for what, rise in rises.items()]
    return {'rise_nats': rises}, holds, tuple(numbers)


def _explains(panel: FitPanel, least: float) -> bool:
    """Whether the R^2 of its fit is at least this."""
    return panel.r2 is not None and panel.r2 >= least


def _slopes(panels: Panels, limits: tuple[float, ...] = ()) -> tuple[Number, ...]:
    return tuple(number(_of('a', p), p.a, limits=limits) for p in panels)


def _of(what: str, panel: FitPanel) -> str:
    return f'{what} ({panel.title})' if panel.title else what


RULES: tuple[Rule[Panels], ...] = (
    Rule(
        FIT_FORM,
        f'In every panel a is positive and R^2 at least {FIT_FORM.thresholds["r2"]}. The '
        'multiplier of the fit, the best one at a single position, the one of the formula (1 + 0.1 '
        'ln s)^2 and the one for the mean of the whole window answer different questions.',
        _form,
    ),
    Rule(
        FIT_SLOPE,
        f'In every panel a lies between {FIT_SLOPE.thresholds["low"]} and '
        f'{FIT_SLOPE.thresholds["high"]}; a fit with an R^2 below {FIT_SLOPE.thresholds["r2"]} '
        f'decides nothing, and {intervals.RULE}.',
        _slope,
    ),
    Rule(
        FIT_BUDGET,
        'a is larger in the panel with the most training tokens than in the one with the fewest; a '
        f'difference of at most {FIT_BUDGET.thresholds["a"]} decides nothing, nor do fits with an '
        f'R^2 below {FIT_BUDGET.thresholds["r2"]}.',
        _budget,
    ),
    Rule(
        UNIFORM_HURTS,
        "In every panel the multiplier of the grid nearest to the paper's largest "
        f'({UNIFORM_HURTS.numbers["large"]}) raises the mean loss over (0, L] by more than '
        f'{UNIFORM_HURTS.thresholds["nats"]} nats.',
        _uniform_hurts,
    ),
    Rule(
        UNIFORM_NOT_FLAT,
        'In every panel the loss under the best multiplier of each position is at the last L/2 '
        f'positions more than {UNIFORM_NOT_FLAT.thresholds["nats"]} nats above that over (L/2, L]; '
        f'within {UNIFORM_NOT_FLAT.thresholds["margin"]} nats of that nothing is decided. At each '
        'position the least of the losses of a grid is chosen by its own noise, which lowers both.',
        _not_flat,
    ),
)
