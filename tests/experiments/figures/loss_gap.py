"""A kind of figure for tests: how far the loss at every position is above the lowest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.figures.base import Figure
from experiments.figures.given import FigureInput
from experiments.figures.look import mpl, style


class LossGapFigure(Figure[np.ndarray]):
    """Options: record, the positions of a model."""

    OPTIONS = NEEDED = ('record',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return {options['record']: 'positions'}

    def read(self, given: FigureInput) -> np.ndarray:
        loss = given.records[given.options['record']]['loss']
        return loss - loss.min()

    def picture(self, given: FigureInput, gap: np.ndarray) -> mpl.Figure:
        figure = style.new_figure(4.0, 3.0)
        figure.subplots().plot(gap)
        return figure

    def rows(self, given: FigureInput, gap: np.ndarray) -> Iterator[dict[str, Any]]:
        yield from ({'position': i + 1, 'gap': float(value)} for i, value in enumerate(gap))

    def caption(self, given: FigureInput, gap: np.ndarray) -> str:
        return f'Loss of {given.options["record"]} above its lowest.'
