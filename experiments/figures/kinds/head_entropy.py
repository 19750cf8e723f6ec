"""Entropy of every head of every layer of one model (the paper's Figure 10)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims import heads as claims
from experiments.figures.given import FigureInput
from experiments.figures.look import captions, head_grid, mpl, style
from experiments.figures.read import curves, position_curve

COLUMNS = 4
POINTS = 64


@dataclasses.dataclass(frozen=True)
class _Layers:
    """positions: [P]. bits: [N_layers, N, P] entropy of every head."""

    name: str
    label: str
    positions: np.ndarray
    bits: np.ndarray


@kind('head_entropy')
class HeadEntropyFigure(Figure[_Layers]):
    """Options: record (default 'headscale') and its label."""

    OPTIONS = ('record', 'label')
    RULES = claims.LAYERS

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return {options.get('record', 'headscale'): 'positions'}

    def read(self, given: FigureInput) -> _Layers:
        name = given.options.get('record', 'headscale')
        records = given.records[name]
        kept = curves.thin(records['entropy'].shape[-1], POINTS)
        bits = records['entropy'][..., kept].astype(np.float64) * curves.BITS_PER_NAT
        positions = position_curve.positions_of(records)[kept]
        return _Layers(name, given.options.get('label', name), positions, bits)

    def shown(self, given: FigureInput, data: _Layers) -> np.ndarray:
        return data.bits[..., -1].mean(axis=1) / np.log2(int(data.positions[-1]))

    def picture(self, given: FigureInput, data: _Layers) -> mpl.Figure:
        records, layers = given.records[data.name], len(data.bits)
        train_length = int(records.attributes['train_length'])
        columns = min(COLUMNS, layers)
        lines = -(-layers // columns)
        figure = style.new_figure(2.3 * columns + 0.9, 1.6 * lines + 0.7)
        axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for layer, ax in enumerate(axes.flat):
            if layer >= layers:
                ax.set_axis_off()
                # The one above it is now the lowest of its column and keeps the tick labels.
                axes.flat[layer - columns].tick_params(labelbottom=True)
                continue
            handles = head_grid.draw_layer(ax, data.positions, data.bits[layer], train_length)
            ax.set_title(f'layer {layer}', fontsize=9)
        head_grid.finish(figure, axes, records, int(data.positions[-1]), handles)
        return figure

    def rows(self, given: FigureInput, data: _Layers) -> Iterator[dict[str, Any]]:
        for layer, bits in enumerate(data.bits):
            yield from head_grid.rows(data.name, data.label, layer, data.positions, bits)

    def caption(self, given: FigureInput, data: _Layers) -> str:
        return (
            f'Attention entropy of every head against position, one panel a layer (from 0), every '
            f'{int(data.positions[-1] - data.positions[-2]):,} positions, not smoothed. Dashed: '
            'the bound log2(i) of even attention. Dotted: the training length L. '
            + captions.sources({data.label: [given.records[data.name]]})
        )
