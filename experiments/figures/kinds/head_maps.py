"""Layers by heads of one model: entropy and weight on the latest tokens, at several positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, Measures
from experiments.figures.look import captions, cells, mpl, style
from experiments.figures.read.curves import BITS_PER_NAT

SPAN = 1 / 16  # of L: positions that a cell is the mean of


@dataclasses.dataclass(frozen=True)
class Maps:
    """At positions L, 2 L, 4 L and so on, and the last: multiples of L [P]. bits, near: [P, layer,
    head], entropy and weight on the latest tokens."""

    multiples: np.ndarray
    bits: np.ndarray
    near: np.ndarray


@kind('head_maps')
class HeadMapsFigure(Figure[Maps]):
    """Options: record, of evaluation attention_shape, and its label."""

    OPTIONS = NEEDED = ('record', 'label')
    MEASURES: ClassVar[Measures] = {
        'attention_shape': {
            'loss': ('position',),
            **dict.fromkeys(('entropy', 'local'), ('layer', 'head', 'position')),
        }
    }

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return {options['record']: 'attention_shape'}

    def read(self, given: FigureInput) -> Maps:
        records = given.records[given.options['record']]
        L, T = int(records.attributes['train_length']), len(records['loss'])
        if T < L:
            raise ValueError(
                f'figure {given.name!r}: the windows have {T} tokens, fewer than L = {L}'
            )
        ends = [*(L * 2**k for k in range(int(np.log2(T / L)) + 1))]
        ends += [T] * (ends[-1] < T)
        span = max(round(L * SPAN), 1)

        def at(measure: str) -> np.ndarray:
            values = records[measure]
            return np.stack([values[..., end - span : end].mean(axis=-1) for end in ends])

        return Maps(np.array(ends) / L, BITS_PER_NAT * at('entropy'), at('local'))

    def picture(self, given: FigureInput, data: Maps) -> mpl.Figure:
        _, layers, heads = data.bits.shape
        columns = len(data.multiples)
        size = max(1.0 + 0.11 * heads, 1.6), max(0.6 + 0.09 * layers, 2.0)
        figure = style.new_figure(size[0] * columns + 1.4, 2 * size[1] + 0.6)
        axes = figure.subplots(2, columns, squeeze=False, sharex=True, sharey=True)
        span = int(given.records[given.options['record']].attributes['span'])
        shown = (
            (data.bits, float(data.bits.max()), 'entropy (bits)'),
            (data.near, 1.0, f'weight on the latest {span:,} tokens'),
        )
        for row, (values, top, label) in zip(axes, shown, strict=True):
            for panel, multiple, map_LN in zip(row, data.multiples, values, strict=True):
                mesh = panel.pcolormesh(map_LN, cmap='viridis', vmin=0, vmax=top)
                panel.set_title(f'at {multiple:g} L')
                cells.no_frame(panel)
            row[0].set_ylabel('layer')
            figure.colorbar(mesh, ax=list(row), label=label, pad=0.01)
        for panel in axes[-1]:
            panel.set_xlabel('head')
        axes[0, 0].invert_yaxis()
        return figure

    def rows(self, given: FigureInput, data: Maps) -> Iterator[dict[str, Any]]:
        for p, multiple in enumerate(data.multiples):
            for (layer, head), bits in np.ndenumerate(data.bits[p]):
                yield {
                    'record': given.options['record'],
                    'position_over_L': float(multiple),
                    'layer': layer,
                    'head': head,
                    'entropy_bits': float(bits),
                    'weight_on_latest': float(data.near[p, layer, head]),
                }

    def caption(self, given: FigureInput, data: Maps) -> str:
        records = given.records[given.options['record']]
        span = max(round(records.attributes['train_length'] * SPAN), 1)
        return (
            'Attention of every head, a cell each: means over windows and over the '
            f'{span:,} positions up to the one named, in multiples of the training length '
            f'L = {int(records.attributes["train_length"]):,}. '
            + captions.sources({given.options['label']: [records]})
        )
