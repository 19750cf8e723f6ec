"""A method with a factor, and the factors chosen for it on other windows than it is shown on."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from experiments.figures.read.length_group import Group


@dataclasses.dataclass(frozen=True)
class Method:
    """reported[i], choice[i]: the model under factors[i] on the windows shown and on the other
    ones. All have the same seeds and lengths, of which at least one is above L."""

    label: str
    factors: tuple[float, ...]
    reported: tuple[Group, ...]
    choice: tuple[Group, ...]

    @property
    def multiples(self) -> np.ndarray:
        return self.reported[0].multiples

    @functools.cached_property
    def per_length(self) -> np.ndarray:
        """[n] index of the factor with the lowest mean loss over the window, mean over seeds; at
        a tie the first."""
        return np.argmin(self._scores, axis=0)

    @functools.cached_property
    def overall(self) -> int:
        """Index of the factor with the lowest mean of that loss over the lengths above L."""
        return int(np.argmin(self._scores[:, self.multiples > 1].mean(axis=1)))

    @property
    def factors_per_length(self) -> list[float]:
        return [self.factors[i] for i in self.per_length]

    @property
    def factor_overall(self) -> float:
        return self.factors[self.overall]

    def best(self, measure: str) -> np.ndarray:
        """[seeds, n] loss on the windows shown, with the factor chosen for each length."""
        return self._shown(measure)[self.per_length, :, np.arange(len(self.multiples))].T

    def single(self, measure: str) -> np.ndarray:
        """[seeds, n] loss on the windows shown, with one factor for all lengths."""
        return self._shown(measure)[self.overall]

    @functools.cached_property
    def _scores(self) -> np.ndarray:
        """[factors, n]"""
        return np.stack([g.loss_window.mean(axis=0, dtype=np.float64) for g in self.choice])

    def _shown(self, measure: str) -> np.ndarray:
        """[factors, seeds, n]"""
        return np.stack([getattr(g, measure) for g in self.reported]).astype(np.float64)
