"""Claims about the best uniform multiplier by position, decided by grids of multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import Number, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import ABOVE, RULE, Bound, every
from experiments.figures.read import curves
from experiments.figures.read.fit_panel import FitPanel
from experiments.figures.roles import Undecided

Panels = Sequence[FitPanel]
FORM, SLOPE, BUDGET = (CLAIMS[k].thresholds for k in ('fit_form', 'fit_slope', 'fit_budget'))
MULTIPLIERS = CLAIMS['uniform_hurts'].numbers  # the paper's


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
    numbers = [number(_of('R^2', p), p.r2, ends=(-math.inf, 1)) for p in panels]
    holds = all(p.a > 0 and _explains(p, FORM['r2']) for p in panels)
    return measured, holds, tuple(numbers)


def _slope(panels: Panels) -> Measured:
    low, high, least = (SLOPE[k] for k in ('low', 'high', 'r2'))
    holds = every(low <= p.a <= high if _explains(p, least) else None for p in panels)
    numbers = (_slope_of(p, (low, high) if _explains(p, least) else ()) for p in panels)
    return {p.title: p.a for p in panels}, holds, tuple(numbers)


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
    holds = None
    if _explains(fewest, BUDGET['r2']) and _explains(most, BUDGET['r2']):
        holds = Bound(ABOVE, 0, BUDGET['a']).holds(Interval.of(np.array([most.a - fewest.a])))
    return measured, holds, (_slope_of(fewest), _slope_of(most))


def _uniform_hurts(panels: Panels) -> dict[str, float]:
    """The grid at positions inside L, for the multiplier nearest to the paper's largest."""
    found: dict[str, float] = {}
    for p in panels:
        if p.base_loss is None or p.multipliers.max() <= 1:
            continue
        near = int(np.abs(p.multipliers - max(MULTIPLIERS.values())).argmin())
        change = (p.loss - p.base_loss)[near, p.positions <= p.train_length].mean()
        found[_of(f'multiplier {p.multipliers[near]:g} - none over (0, L]', p)] = change
    return found


def _not_flat(panels: Panels) -> dict[str, float]:
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
    return rises


def _explains(panel: FitPanel, least: float) -> bool:
    """Whether the R^2 of its fit is at least this."""
    return panel.r2 is not None and panel.r2 >= least


def _slope_of(panel: FitPanel, limits: tuple[float, ...] = ()) -> Number:
    return number(_of('a', panel), panel.a, limits=limits)


def _of(what: str, panel: FitPanel) -> str:
    return f'{what} ({panel.title})' if panel.title else what


RULES: tuple[Rule[Panels], ...] = (
    Rule(
        'fit_form',
        f'In every panel a is positive and R^2 at least {FORM["r2"]}. The multiplier of the fit, '
        'the best one at a single position, the one of the formula (1 + 0.1 ln s)^2 and the one '
        'for the mean of the whole window answer different questions.',
        _form,
    ),
    Rule(
        'fit_slope',
        f'In every panel a lies between {SLOPE["low"]} and {SLOPE["high"]}; a fit with an R^2 '
        f'below {SLOPE["r2"]} decides nothing, and {RULE}.',
        _slope,
    ),
    Rule(
        'fit_budget',
        'a is larger in the panel with the most training tokens than in the one with the fewest. A '
        f'difference of at most {BUDGET["a"]} decides nothing, nor do fits with an R^2 below '
        f'{BUDGET["r2"]}.',
        _budget,
    ),
    Rule(
        'uniform_hurts',
        "Mean loss over (0, L] with the multiplier of the grid nearest to the paper's largest "
        f'({max(MULTIPLIERS.values())}) less that without one, in every panel',
        Every(_uniform_hurts, Bound(ABOVE, 'nats'), '', each=True, alone=True),
    ),
    Rule(
        'uniform_not_flat',
        'Loss under the best multiplier of each position, over the last L/2 positions less that '
        'over (L/2, L], in every panel. At each position the least of the losses of a grid is '
        'chosen by its own noise, which lowers both',
        Every(_not_flat, Bound(ABOVE, 'nats', 'margin'), '', each=True, alone=True),
    ),
)
