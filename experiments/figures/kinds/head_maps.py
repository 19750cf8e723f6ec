"""Layers by heads: entropy and weight on the latest tokens, at several positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import (
    FigureInput,
    Known,
    Measures,
    check_count,
    check_differ,
    check_options,
    shared_attribute,
)
from experiments.figures.look import captions, cells, mpl, style
from experiments.figures.read import positions_known
from experiments.figures.read.curves import BITS_PER_NAT

MOST = 3  # models


@dataclasses.dataclass(frozen=True)
class Maps:
    """One model, at positions L, 2 L, 4 L and so on, and the last: multiples of L [P]. bits, near:
    [P, layer, head], entropy and weight on the latest tokens."""

    label: str
    multiples: np.ndarray
    bits: np.ndarray
    near: np.ndarray


@kind('head_maps')
class HeadMapsFigure(Figure[Sequence[Maps]]):
    """Options: curves, [{record, label}], of evaluation attention_shape over the same windows; each
    has its maps beside those of the one before."""

    OPTIONS = NEEDED = ('curves',)
    MEASURES: ClassVar[Measures] = {
        'attention_shape': {
            'loss': ('position',),
            **dict.fromkeys(('entropy', 'local'), ('layer', 'head', 'position')),
        }
    }
    SHARED = ('train_length', 'length')

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        check_count(name, 'curves', len(options['curves']), MOST)
        for curve in options['curves']:
            check_options(name, curve, ('record', 'label'), ('record', 'label'), 'curves')
        check_differ(name, 'labels of curves', [curve['label'] for curve in options['curves']])
        return {curve['record']: 'attention_shape' for curve in options['curves']}

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.reaching_l(name, known)

    def read(self, given: FigureInput) -> list[Maps]:
        for attribute in ('span', 'n_layers', 'n_heads'):
            shared_attribute(given, [c['record'] for c in given.options['curves']], attribute)
        return [_read(given, curve) for curve in given.options['curves']]

    def picture(self, given: FigureInput, data: Sequence[Maps]) -> mpl.Figure:
        _, layers, heads = data[0].bits.shape
        columns = sum(len(maps.multiples) for maps in data)
        size = max(1.0 + 0.11 * heads, 1.6), max(0.6 + 0.09 * layers, 2.0)
        figure = style.new_figure(size[0] * columns + 1.4, 2 * size[1] + 0.8)
        axes = figure.subplots(2, columns, squeeze=False, sharex=True, sharey=True)
        titles = [
            f'{maps.label if k == 0 else ""}\nat {multiple:g} L'
            for maps in data
            for k, multiple in enumerate(maps.multiples)
        ]
        span = int(given.records[given.options['curves'][0]['record']].attributes['span'])
        bits, near = (np.concatenate([getattr(m, name) for m in data]) for name in ('bits', 'near'))
        shown = (
            (bits, float(bits.max()), 'entropy (bits)'),
            (near, 1.0, f'weight on the latest {span:,} tokens'),
        )
        for row, (values, top, label) in zip(axes, shown, strict=True):
            for panel, map_LN in zip(row, values, strict=True):
                mesh = panel.imshow(map_LN, cmap='viridis', vmin=0, vmax=top, aspect='auto')
                cells.no_frame(panel)
            row[0].set_ylabel('layer')
            figure.colorbar(mesh, ax=list(row), label=label, pad=0.01)
        for above, below, title in zip(*axes, titles, strict=True):
            above.set_title(title)
            below.set_xlabel('head')
        return figure

    def rows(self, given: FigureInput, data: Sequence[Maps]) -> Iterator[dict[str, Any]]:
        for curve, maps in zip(given.options['curves'], data, strict=True):
            for p, multiple in enumerate(maps.multiples):
                for (layer, head), bits in np.ndenumerate(maps.bits[p]):
                    yield {
                        'record': curve['record'],
                        'label': maps.label,
                        'position_over_L': float(multiple),
                        'layer': layer,
                        'head': head,
                        'entropy_bits': float(bits),
                        'weight_on_latest': float(maps.near[p, layer, head]),
                    }

    def caption(self, given: FigureInput, data: Sequence[Maps]) -> str:
        records = {c['label']: [given.records[c['record']]] for c in given.options['curves']}
        L = int(records[data[0].label][0].attributes['train_length'])
        return (
            'Attention of every head, a cell each: means over windows and over the '
            f'{_span(L):,} positions up to the one named, in multiples of the training length '
            f'L = {L:,}. {captions.sources(records)}'
        )


def _span(train_length: int) -> int:
    """Positions that a cell is the mean of: L / 16."""
    return max(train_length // 16, 1)


def _read(given: FigureInput, curve: Mapping[str, Any]) -> Maps:
    records = given.records[curve['record']]
    L, T = int(records.attributes['train_length']), len(records['loss'])
    if T < L:
        raise ValueError(f'figure {given.name!r}: the windows have {T} tokens, fewer than L = {L}')
    ends = [L * 2**k for k in range(int(np.log2(T / L)) + 1)]
    ends += [T] * (ends[-1] < T)

    def at(measure: str) -> np.ndarray:
        return np.stack([records[measure][..., n - _span(L) : n].mean(axis=-1) for n in ends])

    return Maps(curve['label'], np.array(ends) / L, BITS_PER_NAT * at('entropy'), at('local'))
