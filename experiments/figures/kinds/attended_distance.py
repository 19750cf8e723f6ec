"""Histograms of the normalised distance of the most attended key, by position encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from experiments.figures.base import kind
from experiments.figures.given import (
    FigureInput,
    Known,
    Measures,
    check_differ,
    names_below,
    shared_attribute,
)
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import mpl, style

COLUMNS = 3  # panels side by side

Found = Mapping[str, Sequence[str]]  # label -> names of records, one a seed


class LabelledRecords(NamedTuple):
    """Label of a curve, and names of its records, one a seed."""

    label: str
    names: Sequence[str]


@kind('attended_distance')
class AttendedDistanceFigure(EncodingFigure[Found]):
    """Options as of `EncodingFigure`; all curves are of one task. It decides no claim."""

    MEASURES: ClassVar[Measures] = {
        'attended_distance': {'share': ('layer', 'head', 'bin'), 'distance': ('layer', 'head')}
    }
    EVALUATION = 'attended_distance'

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        needed = super().needs(name, options)
        check_differ(name, 'labels', [curve['label'] for curve in options['curves']])
        return needed

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        """Nothing: its curves need not be the same for several tasks."""

    def read(self, given: FigureInput) -> Found:
        return {c['label']: names_below(given, f'{c["group"]}/') for c in given.options['curves']}

    def picture(self, given: FigureInput, found: Found) -> mpl.Figure:
        rows = -(-len(found) // COLUMNS)
        figure = style.new_figure(11.0, 0.4 + 2.6 * rows)
        grid = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True)
        colors = style.colors_of(found)
        for e, (label, names) in enumerate(found.items()):
            axes = grid[e // COLUMNS, e % COLUMNS]
            shares, starts = _shares(given, names), _starts(given, names[0])
            width = 1 / len(starts)
            axes.bar(starts + width / 2, shares.mean(axis=0), width, color=colors[label])
            if len(names) > 1:
                for seed in shares:
                    axes.plot(starts + width / 2, seed, **_SEED)
            axes.set_xlim(0, 1)
            axes.set_title(label)
            axes.set_xlabel('distance of the most attended key / context')
            if e % COLUMNS == 0:
                axes.set_ylabel('share of queries')
        for axes in grid.flat[len(found) :]:
            axes.set_visible(False)
        return figure

    def rows(self, given: FigureInput, found: Found) -> Iterator[dict[str, Any]]:
        """One a record, layer, head and bin; layers and heads count from 1."""
        for label, names in found.items():
            for name in names:
                records, starts = given.records[name], _starts(given, name)
                for layer, head in np.ndindex(records['distance'].shape):
                    for b, start in enumerate(starts):
                        yield {
                            'label': label,
                            'seed': records.attributes['seed'],
                            'layer': layer + 1,
                            'head': head + 1,
                            'from': float(start),
                            'share': float(records['share'][layer, head, b]),
                            'mean_distance': float(records['distance'][layer, head]),
                            'record': name,
                        }

    def markdown(self, given: FigureInput, found: Found) -> str:
        """Mean distances, and shares of queries in the nearest and the farthest fifth."""
        lines = [
            '| | mean distance | nearest fifth | farthest fifth |\n',
            '| --- | --- | --- | --- |\n',
        ]
        for label, names in found.items():
            mean = np.mean([given.records[name]['distance'].mean() for name in names])
            shares, starts = _shares(given, names).mean(axis=0), _starts(given, names[0])
            near, far = shares[starts < 0.2 - 1e-9].sum(), shares[starts > 0.8 - 1e-9].sum()
            lines.append(f'| {label} | {mean:.3f} | {near:.3f} | {far:.3f} |\n')
        return ''.join(lines)

    def caption(self, given: FigureInput, found: Found) -> str:
        names = [name for each in found.values() for name in each]
        task = shared_attribute(given, names, 'task')
        count = len(next(iter(found.values())))
        seeds = 'one seed' if count == 1 else f'means of {count} seeds (dots: each)'
        models = task_captions.models(
            given, {task: [LabelledRecords(*pair) for pair in found.items()]}
        )
        return (
            'How far back the key with most attention is, as a share of what the query sees: (q - '
            'k) / (q + 1) (arXiv 2305.19466, Figure 7), over all heads and tokens of targets of '
            f'{task}; {seeds}. {models}'
        )


def _shares(given: FigureInput, names: Sequence[str]) -> np.ndarray:
    """[S, bin] means over layers and heads."""
    return np.stack([given.records[name]['share'].mean(axis=(0, 1)) for name in names])


def _starts(given: FigureInput, name: str) -> np.ndarray:
    """[bin] where every bin begins."""
    shares = given.records[name]['share']
    return given.records[name].along('bin', shares.ndim - 1)


_SEED: dict[str, Any] = {
    'linestyle': 'none',
    'marker': 'o',
    'markersize': 2.5,
    'markerfacecolor': 'white',
    'markeredgecolor': style.BLACK,
    'markeredgewidth': 0.5,
}
