"""Confidence intervals over seeds, and what they decide about a limit."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

LEVEL = 95  # percent
# Two-sided quantiles of Student's t at that level, by degrees of freedom from 1.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
RULE = f'an interval of the mean over seeds (t, {LEVEL} %) that contains the limit decides nothing'
OVER_SEEDS = f'{RULE}, nor does one seed'


@dataclasses.dataclass(frozen=True)
class Interval:
    """Mean over seeds and its 95 % interval by Student's t; without one where there is a single
    seed. More than eleven seeds have the interval of eleven degrees less, which is wider.

    decides: False of one seed where that is to decide nothing.
    """

    mean: float
    low: float
    high: float
    by_seed: tuple[float, ...]
    decides: bool = True

    @classmethod
    def of(cls, values_S: np.ndarray) -> Interval:
        """Of one number a seed, S >= 1."""
        values = np.asarray(values_S, np.float64)
        mean, freedom = float(values.mean()), len(values) - 1
        half = 0.0
        if freedom:
            t = _T[min(freedom, len(_T)) - 1]
            half = t * float(values.std(ddof=1)) / math.sqrt(len(values))
        return cls(mean, mean - half, mean + half, tuple(values.tolist()))

    @classmethod
    def over_seeds(cls, values_S: np.ndarray) -> Interval:
        """As `of`; one seed decides nothing."""
        found = cls.of(values_S)
        return dataclasses.replace(found, decides=len(found.by_seed) > 1)

    def contains(self, limit: float) -> bool:
        """Whether a limit lies in the interval of several seeds."""
        return self.low <= limit <= self.high and self.low < self.high

    def within(self, least: float, most: float) -> Interval:
        """Of a quantity that lies between these: the interval as far as it does."""
        return dataclasses.replace(self, low=max(self.low, least), high=min(self.high, most))

    def above(self, limit: float, margin: float = 0.0) -> bool | None:
        """Whether the mean lies above `limit`; None where the interval contains it, where the mean
        is within `margin` of it, and where nothing is to be decided."""
        if not self.decides:
            return None
        if self.contains(limit):
            return None
        if margin and abs(self.mean - limit) <= margin:
            return None
        return self.mean > limit

    def below(self, limit: float, margin: float = 0.0) -> bool | None:
        """As `above`, on the other side."""
        turned = Interval(-self.mean, -self.high, -self.low, (), self.decides)
        return turned.above(-limit, margin)

    def at_most(self, limit: float) -> bool | None:
        """Whether the mean does not lie above `limit`; None where the interval contains it, and
        where nothing is to be decided. Where several seeds decide, each is on the mean's side."""
        above = self.above(limit)
        return None if above is None else not above

    def near(self, value: float, most: float) -> bool | None:
        """Whether the mean is within `most` of `value`; None where the interval contains an end."""
        return every((self.above(value - most), self.below(value + most)))

    def stated(self) -> dict[str, Any]:
        """As it stands in summary.json."""
        whole = {'mean': self.mean, 'by_seed': list(self.by_seed)}
        return whole if len(self.by_seed) == 1 else {**whole, 'interval': [self.low, self.high]}


def below(value: float, limit: float, margin: float) -> bool | None:
    """As `Interval.below`, of one seed or of a mean whose seeds are not known."""
    return Interval.of(np.array([value])).below(limit, margin)


def above(value: float, limit: float, margin: float) -> bool | None:
    """As `Interval.above`, of one seed or of a mean whose seeds are not known."""
    return Interval.of(np.array([value])).above(limit, margin)


def at_most_by_chance(successes: int, trials: int, share: float) -> float:
    """Probability of at most so many successes, each of probability `share` (binomial)."""
    return sum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(successes + 1)
    )


def every(verdicts: Iterable[bool | None]) -> bool | None:
    """Whether all hold: False where one does not, else None where one is undecided."""
    found = list(verdicts)
    if any(verdict is False for verdict in found):
        return False
    return None if any(verdict is None for verdict in found) else True


def stated(found: Mapping[str, Interval]) -> dict[str, dict[str, Any]]:
    """Each interval by its name, as it stands in summary.json."""
    return {name: interval.stated() for name, interval in found.items()}
