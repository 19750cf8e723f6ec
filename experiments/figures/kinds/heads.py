"""Entropy of every head in a few layers, model by model (the paper's Figure 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims import heads as claims
from experiments.figures.given import FigureInput, Known, check_options
from experiments.figures.look import captions, head_grid, mpl, style
from experiments.figures.read import curves, position_curve, positions_known
from experiments.figures.roles import told_apart
from nope.records import Records

POINTS = 512


@dataclasses.dataclass(frozen=True)
class _Panels:
    """labels: record -> its label, a row each. layers: a column each. kept: indices of the
    positions that are drawn, of `length`."""

    labels: Mapping[str, str]
    layers: Sequence[int]
    kept: np.ndarray
    length: int
    train_length: int

    def bits(self, records: Records, layer: int) -> np.ndarray:
        """[N, P] of the heads of a layer."""
        return records['entropy'][layer][:, self.kept].astype(np.float64) * curves.BITS_PER_NAT


@kind('heads')
class HeadsFigure(Figure[_Panels]):
    """Options: rows, [{record, label}]; layers, indices from 0 (default: first, middle, last)."""

    OPTIONS, NEEDED = ('rows', 'layers'), ('rows',)
    SHARED = ('train_length', 'length', 'n_heads')
    RULES = claims.APART

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for row in options['rows']:
            check_options(name, row, ('record', 'label'), ('record',), 'rows')
        return {row['record']: 'positions' for row in options['rows']}

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.with_layers(name, options, known)

    def read(self, given: FigureInput) -> _Panels:
        labels = {r['record']: r.get('label', r['record']) for r in given.options['rows']}
        facts = given.records[next(iter(labels))].attributes
        kept = curves.thin(facts['length'], POINTS)
        layers = _layers(given, list(labels))
        return _Panels(labels, layers, kept, facts['length'], facts['train_length'])

    def shown(self, given: FigureInput, data: _Panels) -> dict[str, Records]:
        return {label: given.records[r] for r, label in told_apart(data.labels).items()}

    def picture(self, given: FigureInput, data: _Panels) -> mpl.Figure:
        lines, columns = len(data.labels), len(data.layers)
        figure = style.new_figure(2.5 * columns + 0.9, 1.8 * lines + 0.7)
        axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for row, (record, label) in zip(axes, data.labels.items(), strict=True):
            records = given.records[record]
            positions = position_curve.positions_of(records)[data.kept]
            for ax, layer in zip(row, data.layers, strict=True):
                bits = data.bits(records, layer)
                handles = head_grid.draw_layer(ax, positions, bits, data.train_length)
                ax.set_title(f'{label}, layer {layer}', fontsize=9)
        head_grid.finish(figure, axes, given.records[record], data.length, handles)
        return figure

    def rows(self, given: FigureInput, data: _Panels) -> Iterator[dict[str, Any]]:
        for record, label in data.labels.items():
            records = given.records[record]
            positions = position_curve.positions_of(records)[data.kept]
            for layer in data.layers:
                bits = data.bits(records, layer)
                yield from head_grid.rows(record, label, layer, positions, bits)

    def caption(self, given: FigureInput, data: _Panels) -> str:
        return (
            'Attention entropy of each head against position, one curve a head, every head drawn '
            f'({len(data.kept):,} of {data.length:,} positions, not smoothed). Rows: '
            f'{"; ".join(data.labels.values())}. Columns: layers '
            f'{", ".join(map(str, data.layers))} (from 0). '
            'Dashed: the bound log2(i) of even attention. Dotted: the training length L. '
            + captions.sources({label: [r] for label, r in self.shown(given, data).items()})
        )


def _layers(given: FigureInput, names: Sequence[str]) -> list[int]:
    count = min(given.records[n]['entropy'].shape[0] for n in names)
    layers = list(given.options.get('layers') or sorted({0, count // 2, count - 1}))
    positions_known.check_layers(given.name, layers, count)
    return layers
