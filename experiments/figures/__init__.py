"""Figures: records in, picture, numbers, caption and claims out; no model, no accelerator.

`KINDS[kind]` is the `Figure` of a kind: `required(name, options)` checks the options of figure
`name` and tells, before anything has run, which records it will ask for; `draw(FigureInput)` draws
one seed, or groups of them; `draw` of this package any number. `write` stores the result.
"""

from __future__ import annotations

import functools

from experiments.figures import kinds, resampled, seeds
from experiments.figures.base import KINDS, Figure, FigureOutput, write
from experiments.figures.claims.decided import Decided
from experiments.figures.given import FigureInput

__all__ = ['KINDS', 'Decided', 'Figure', 'FigureInput', 'FigureOutput', 'draw', 'kinds', 'write']


def draw(kind: str, given: FigureInput) -> FigureOutput:
    """The figure of a kind, from records of one seed or of several."""
    figure = KINDS[kind]
    needs = figure.required(given.name, given.options)
    decided = figure.decided if figure.RESAMPLED else None
    single = functools.partial(resampled.draw, figure.draw, decided, needs)
    means, alone = figure.MEANS, figure.ALONE
    return seeds.draw(figure.draw, needs, given, means=means, alone=alone, single=single)
