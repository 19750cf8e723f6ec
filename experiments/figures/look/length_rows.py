"""Rows of panels of loss against length: which curves each shows, and how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from experiments.figures.look import mpl, style
from experiments.figures.look.length_axes import MARKERS

# Of curves that every row shows: base models and the like.
REFERENCES = ((style.BLACK, '-'), (style.GREY, '--'), (style.GREY, ':'))


class Mark(NamedTuple):
    """Looks of a curve."""

    color: str
    marker: str
    linestyle: str = '-'

    def handle(self, label: str) -> mpl.Line2D:
        """For the legend."""
        return mpl.Line2D([], [], markersize=4, label=label, **self._asdict())


class PanelRow(NamedTuple):
    """A row of panels. curves: number of a curve in the options -> its looks."""

    title: str
    curves: Mapping[int, Mark]


def of(curves: Sequence[Mapping[str, Any]]) -> list[PanelRow]:
    """Rows by the `row` of the curves, its title, in their order; curves without one are in all
    rows, where there are any. Curves of one label look alike in all rows."""
    titles = dict.fromkeys(curve['row'] for curve in curves if 'row' in curve)
    everywhere = [number for number, curve in enumerate(curves) if 'row' not in curve]
    marks = [Mark(*looks) for looks in zip(style.COLORS, MARKERS, strict=True)]
    of_color = {mark.color: mark for mark in marks}
    if not titles:
        colors = style.colors_of(map(_label, curves), most=len(style.COLORS))
        return [PanelRow('', {n: of_color[colors[_label(curves[n])]] for n in everywhere})]
    references = [Mark(color, '', linestyle) for color, linestyle in REFERENCES]
    shared = dict(zip(everywhere, references, strict=False))
    rows: list[PanelRow] = []
    named = {_label(c) for c in curves if 'row' in c} & style.MODELS.keys()
    # Of labels in the rows so far, and of models that other figures show, which look as there.
    looks: dict[str, Mark] = {label: of_color[style.MODELS[label]] for label in named}
    for title in titles:
        numbers = _numbers(curves, title)
        labels = {number: _label(curves[number]) for number in numbers}
        seen = [looks[label] for label in labels.values() if label in looks]
        free = [mark for mark in marks if mark not in seen and mark.color != style.BLACK]
        if looks:  # next to what is known by its looks, what is new has looks of its own first
            free.sort(key=lambda mark: mark in looks.values())
        own = {number: looks.get(label) or free.pop(0) for number, label in labels.items()}
        looks |= {labels[number]: mark for number, mark in own.items()}
        rows.append(PanelRow(title, shared | own))
    return rows


def _label(curve: Mapping[str, Any]) -> str:
    return curve.get('label', curve['group'])


def _numbers(curves: Sequence[Mapping[str, Any]], title: str) -> list[int]:
    return [number for number, curve in enumerate(curves) if curve.get('row') == title]


def check(name: str, curves: Sequence[Mapping[str, Any]]) -> None:
    """ValueError unless every row has a colour for each of its curves."""
    shared = [curve for curve in curves if 'row' not in curve]
    titles = {curve['row'] for curve in curves if 'row' in curve}
    most = len(REFERENCES) if titles else len(style.COLORS)
    if len(shared) > most:
        where = ' without a row' if titles else ''
        raise ValueError(f'figure {name!r}: curves{where} must be 1 to {most}, got {len(shared)}')
    for title in titles:
        own = _numbers(curves, title)
        if len(own) >= len(style.COLORS):  # black is the base model's
            raise ValueError(
                f'figure {name!r}: curves of row {title!r} must be 1 to {len(style.COLORS) - 1}, '
                f'got {len(own)}'
            )
