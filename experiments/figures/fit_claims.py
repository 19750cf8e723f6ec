"""What the paper says of the best uniform scale by position, tested on measured grids."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import claims
from experiments.figures.base import Claim

PAPER_FITS = {'10K steps': (0.3010, 0.9954), '50K steps': (0.3973, 0.9773)}
PAPER_SCALES = (1.2, 1.5, 1.8)
A_RANGE = (0.25, 0.45)
R2_MIN = 0.9


@dataclasses.dataclass(frozen=True)
class FitPanel:
    """positions [T]; loss [scales, T], unsmoothed, nats; a, r2: of 1 + a ln(i / L),
    r2 None where the best scale does not vary."""

    record: str
    title: str
    facts: Mapping[str, Any]
    train_length: int
    positions: np.ndarray
    scales: np.ndarray
    loss: np.ndarray
    best_loss: np.ndarray
    best_scale: np.ndarray
    a: float
    r2: float | None

    def fit(self, positions: np.ndarray) -> np.ndarray:
        return 1 + self.a * np.log(positions / self.train_length)

    @property
    def base_loss(self) -> np.ndarray | None:
        """Loss [T] of the unscaled model, where the grid holds it."""
        found = np.flatnonzero(np.isclose(self.scales, 1))
        return self.loss[found[0]] if found.size else None


def from_panels(panels: Sequence[FitPanel]) -> list[Claim]:
    """Every claim that `panels` can bear."""
    found = [_form(panels), _slope(panels), _budget(panels), _short(panels)]
    return [claim for claim in found if claim is not None]


def _form(panels: Sequence[FitPanel]) -> Claim:
    measured = {}
    for p in panels:
        multiples = [m for m in (1, 2, 4, 8) if m * p.train_length <= p.positions[-1]]
        measured[p.title] = {
            'a': p.a,
            'r2': p.r2,
            'fit': {f'{m} L': 1 + p.a * math.log(m) for m in multiples},
            'best_scale': {f'{m} L': p.best_scale[m * p.train_length - 1] for m in multiples},
            'yarn_formula': {f'{m} L': (1 + 0.1 * math.log(m)) ** 2 for m in multiples},
            'best_scale_whole_window': p.facts['best_scale_window'],
        }
    return Claim(
        5,
        'The best uniform scale grows as 1 + a ln(i/L): '
        + ', '.join(f'R^2 = {r2} at {k}' for k, (_, r2) in PAPER_FITS.items())
        + '.',
        measured,
        all(p.a > 0 and p.r2 is not None and p.r2 >= R2_MIN for p in panels),
        f'In every panel a is positive and R^2 at least {R2_MIN}. The scale of the fit, the best '
        'one at a single position, the one of the formula (1 + 0.1 ln s)^2 and the one for the '
        'mean of the whole window answer different questions.',
    )


def _slope(panels: Sequence[FitPanel]) -> Claim:
    low, high = A_RANGE
    return Claim(
        5,
        'a is about 0.3 to 0.4: ' + ', '.join(f'{a} at {k}' for k, (a, _) in PAPER_FITS.items()),
        {p.title: p.a for p in panels},
        all(low <= p.a <= high for p in panels),
        f'In every panel a lies between {low} and {high}.',
    )


def _budget(panels: Sequence[FitPanel]) -> Claim | None:
    # Of an imported model it is not known.
    known = [p for p in panels if p.facts['train_tokens'] is not None]
    ordered = sorted(known, key=lambda p: p.facts['train_tokens'])
    tokens = [p.facts['train_tokens'] for p in ordered]
    if len(set(tokens)) < 2:
        return None
    return Claim(
        5,
        'a grows with training, from 0.3010 at 10K steps to 0.3973 at 50K steps.',
        {p.title: {'train_tokens': p.facts['train_tokens'], 'a': p.a} for p in ordered},
        ordered[-1].a > ordered[0].a,
        'a is larger in the panel with the most training tokens than in the one with the fewest.',
    )


def _short(panels: Sequence[FitPanel]) -> Claim | None:
    """What the grid says of positions inside L, for the scales nearest to the paper's."""
    measured: dict[str, Any] = {}
    largest = []
    for p in panels:
        if p.base_loss is None or p.scales.max() <= 1:
            continue
        inside = p.positions <= p.train_length
        change = (p.loss - p.base_loss)[:, inside].mean(axis=1)
        near = sorted({int(np.abs(p.scales - s).argmin()) for s in PAPER_SCALES})
        near = [i for i in near if p.scales[i] > 1]
        measured[p.title] = {f'{p.scales[i]:g}': change[i] for i in near}
        largest.append(change[near[-1]] if near else 0.0)
    if not measured:
        return None
    return claims.harm(measured, largest)
