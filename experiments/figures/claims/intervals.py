"""Confidence intervals over seeds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

LEVEL = 95  # percent


@dataclasses.dataclass(frozen=True)
class Interval:
    """Mean over seeds and its 95 % interval by Student's t; a single seed has none.

    decides: False of one seed where that is to decide nothing.
    """

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]
    decides: bool = True

    @classmethod
    def of(cls, values_S: np.ndarray, several: bool = False, what: str = 'mean') -> Interval:
        """Takes one number a seed, S >= 1. With `several` one seed decides nothing. ValueError,
        naming the number by `what`, unless all are finite."""
        values = np.asarray(values_S, np.float64)
        if not np.isfinite(values).all():
            text = f'number {what!r} must be finite for every seed, got {values.tolist()}'
            raise ValueError(text)
        mean, freedom = float(values.mean()), len(values) - 1
        half = 0.0
        if freedom:
            # As tables print it, so that intervals stay those of results that were drawn with one.
            t = round(float(special.stdtrit(freedom, (1 + LEVEL / 100) / 2)), 3)
            half = t * float(values.std(ddof=1)) / math.sqrt(len(values))
        decides = freedom > 0 or not several
        return cls(mean, mean - half, mean + half, tuple(values.tolist()), decides)

    def contains(self, limit: float) -> bool:
        """Whether a limit lies in the interval of several seeds."""
        return self.low <= limit <= self.high and self.low < self.high

    def within(self, least: float, most: float) -> Interval:
        """Of a quantity that lies between these: the interval as far as it does."""
        return dataclasses.replace(self, low=max(self.low, least), high=min(self.high, most))

    def stated(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        whole = {'mean': self.mean, 'by_seed': list(self.by_seed)}
        return whole if len(self.by_seed) == 1 else {**whole, 'interval': [self.low, self.high]}


def stated(found: Mapping[str, Interval]) -> dict[str, dict[str, Any]]:
    """Each interval by its name, as it stands in summary.json."""
    return {name: interval.stated() for name, interval in found.items()}
