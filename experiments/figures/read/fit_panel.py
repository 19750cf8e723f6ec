"""A grid of uniform multipliers and the fit to the best of them by position, as one panel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class FitPanel:
    """positions [T]; loss [multipliers, T], unsmoothed, nats; a, r2: of 1 + a ln(i / L),
    r2 None where the best multiplier does not vary."""

    record: str
    title: str
    facts: Mapping[str, Any]
    train_length: int
    positions: np.ndarray
    multipliers: np.ndarray
    loss: np.ndarray
    best_loss: np.ndarray
    best_multiplier: np.ndarray
    a: float
    r2: float | None

    @property
    def seeds(self) -> int:
        """Seeds that all numbers are means over: of several, `r2` is not that of the mean curve."""
        seed = self.facts['seed']
        return len(seed) if isinstance(seed, tuple) else 1

    def fit(self, positions: np.ndarray) -> np.ndarray:
        return 1 + self.a * np.log(positions / self.train_length)

    @property
    def base_loss(self) -> np.ndarray | None:
        """Loss [T] of the unscaled model, where the grid holds it."""
        found = np.flatnonzero(np.isclose(self.multipliers, 1))
        return self.loss[found[0]] if found.size else None
