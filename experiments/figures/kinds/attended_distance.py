"""Histograms of the normalised distance of the most attended key, by position encoding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, Measures, check_differ, shared_attribute
from experiments.figures.kinds.encoding_tasks import captions
from experiments.figures.look import mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.encoding_tasks import curves

COLUMNS = 3  # panels side by side


class Histogram(NamedTuple):
    """names: the records, one a seed. starts: [bin]. shares: [S, layer, head, bin] of queries.
    distances: [S, layer, head] means."""

    label: str
    names: Sequence[str]
    starts: np.ndarray
    shares: np.ndarray
    distances: np.ndarray


@kind('attended_distance')
class AttendedDistanceFigure(Figure[Sequence[Histogram]]):
    """Options: curves, [{group, label, paper}], each the name of records '<group>/<seed>' of one
    encoding, all of one task. It decides no claim."""

    OPTIONS = NEEDED = ('curves',)
    MEASURES: ClassVar[Measures] = {
        'attended_distance': {'share': ('layer', 'head', 'bin'), 'distance': ('layer', 'head')}
    }

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        check_differ(name, 'labels', [curve.get('label') for curve in options['curves']])
        return curves.needs(name, options, 'attended_distance')

    def read(self, given: FigureInput) -> list[Histogram]:
        histograms = []
        for curve in given.options['curves']:
            found = BySeed.of(given, curve['group'])
            shares = found.stacked('share')
            starts = found.records[0].along('bin', shares.shape[-1])
            measured = (starts, shares, found.stacked('distance'))
            histograms.append(Histogram(curve['label'], found.names, *measured))
        return histograms

    def picture(self, given: FigureInput, data: Sequence[Histogram]) -> mpl.Figure:
        rows = math.ceil(len(data) / COLUMNS)
        figure = style.new_figure(11.0, 0.4 + 2.6 * rows)
        grid = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True)
        colors = style.colors_of(h.label for h in data)
        dot: dict[str, Any] = {'linestyle': 'none', 'marker': 'o', 'markersize': 2.5}
        edge = {'markeredgecolor': style.BLACK, 'markeredgewidth': 0.5}
        for h, axes in zip(data, grid.flat, strict=False):
            by_seed, width = h.shares.mean(axis=(1, 2)), 1 / len(h.starts)
            middles = h.starts + width / 2
            axes.bar(middles, by_seed.mean(axis=0), width, color=colors[h.label])
            if len(by_seed) > 1:
                for seed in by_seed:
                    axes.plot(middles, seed, markerfacecolor='white', **dot, **edge)
            axes.set_xlim(0, 1)
            axes.set_title(h.label)
            axes.set_xlabel('distance of the most attended key / context')
        for axes in grid[:, 0]:
            axes.set_ylabel('share of queries')
        for axes in grid.flat[len(data) :]:
            axes.set_visible(False)
        return figure

    def rows(self, given: FigureInput, data: Sequence[Histogram]) -> Iterator[dict[str, Any]]:
        """One a record, layer, head and bin; layers and heads count from 1."""
        for h in data:
            for s, layer, head, b in np.ndindex(h.shares.shape):
                yield {
                    'label': h.label,
                    'seed': given.records[h.names[s]].attributes['seed'],
                    'layer': layer + 1,
                    'head': head + 1,
                    'from': float(h.starts[b]),
                    'share': float(h.shares[s, layer, head, b]),
                    'mean_distance': float(h.distances[s, layer, head]),
                    'record': h.names[s],
                }

    def markdown(self, given: FigureInput, data: Sequence[Histogram]) -> str:
        """Mean distances, and shares of queries in the nearest and the farthest fifth."""
        rows = []
        for h in data:
            shares = h.shares.mean(axis=(0, 1, 2))
            near, far = shares[h.starts < 0.2 - 1e-9].sum(), shares[h.starts > 0.8 - 1e-9].sum()
            rows.append([h.label, *(f'{x:.3f}' for x in (h.distances.mean(), near, far))])
        return table_of(['', 'mean distance', 'nearest fifth', 'farthest fifth'], rows)

    def caption(self, given: FigureInput, data: Sequence[Histogram]) -> str:
        task = shared_attribute(given, [name for h in data for name in h.names], 'task')
        count = len(data[0].names)
        seeds = 'one seed' if count == 1 else f'means of {count} seeds (dots: each)'
        return (
            'How far back the key with most attention is, as a share of what the query sees: (q - '
            'k) / (q + 1) (arXiv 2305.19466, Figure 7), over all heads and tokens of targets of '
            f'{task}; {seeds}. {captions.models(given, {task: data})}'
        )
