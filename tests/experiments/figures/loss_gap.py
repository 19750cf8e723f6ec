"""A kind of figure for tests: how far the loss at every position is above the lowest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figures.base import FigureOutput, runs_of
from experiments.figures.given import FigureInput, check_options, check_records
from experiments.figures.look import style


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Options: record, the positions of a model."""
    check_options(name, options, ('record',), ('record',))
    return {options['record']: 'positions'}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    check_records(given, required(given.name, given.options))
    record = given.options['record']
    loss = given.records[record]['loss']
    gap = loss - loss.min()
    figure = style.new_figure(4.0, 3.0)
    figure.subplots().plot(gap)
    rows = [{'position': i + 1, 'gap': float(value)} for i, value in enumerate(gap)]
    caption = f'Loss of {record} above its lowest.'
    return FigureOutput(given.name, figure, rows, caption, [], runs_of(given, [record]))
