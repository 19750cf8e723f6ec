"""Loss, retrieval and entropy by length of a checkpoint under one recipe of extension."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from experiments.figures.read.by_seed import index_of


class Curve(NamedTuple):
    """A measure by length. multiples: [n] of L, ascending. values: [n]."""

    multiples: np.ndarray
    values: np.ndarray

    def at(self, multiple: float) -> float | None:
        """The value at so many L; None where it was not measured."""
        index = index_of(multiple, self.multiples)
        return None if index is None else float(self.values[index])


@dataclasses.dataclass(frozen=True)
class Recipe:
    """curves: by measure. entropy: multiple of L -> bits [layer, head], at L and further; None
    where it was not measured. effective: tokens by RULER's rules, empty without RULER."""

    label: str
    curves: Mapping[str, Curve]
    entropy: Mapping[float, np.ndarray] | None
    effective: Mapping[str, int]
