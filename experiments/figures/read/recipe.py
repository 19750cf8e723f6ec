"""What one recipe for a checkpoint reaches, by length."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Curve(NamedTuple):
    """A measure by length. lengths: in tokens, ascending. multiples: [n] of L. values: [n]."""

    lengths: tuple[int, ...]
    multiples: np.ndarray
    values: np.ndarray

    def at(self, multiple: float) -> float | None:
        """The value at so many L; None where it was not measured."""
        near = np.flatnonzero(np.isclose(self.multiples, multiple))
        return float(self.values[near[0]]) if near.size else None


@dataclasses.dataclass(frozen=True)
class Recipe:
    """curves: by measure. entropy: multiple of L -> bits [layer, head], at L and further; None
    where it was not measured. effective: tokens by RULER's rules, empty without RULER."""

    label: str
    curves: Mapping[str, Curve]
    entropy: Mapping[float, np.ndarray] | None
    effective: Mapping[str, int]
