"""Searched multiplier of each head against its entropy (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims import heads as claims
from experiments.figures.given import FigureInput, Known
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves, position_curve, positions_known
from nope.records import Records

MAX_LAYERS = 7
MARKERS = 'osD^vP*X'


@kind('multiplier_entropy')
class MultiplierEntropyFigure(Figure[claims.Heads]):
    """Options: record and its label; control, the record of the same model without the multipliers,
    by which the claim is decided; layers (default: up to seven, evenly)."""

    OPTIONS, NEEDED = ('record', 'control', 'label', 'layers'), ('record', 'control', 'label')
    RULES = claims.CORRELATIONS

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return dict.fromkeys((options['record'], options['control']), 'positions')

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.with_layers(name, options, known)

    def read(self, given: FigureInput) -> claims.Heads:
        """ValueError where the control is no measurement of the same heads without multipliers up
        to the same position."""
        records, control = self._records(given), given.records[given.options['control']]
        shape, found = records['entropy'].shape, control['entropy'].shape
        if found != shape or (control['multiplier'] != 1).any():
            raise ValueError(
                f'figure {given.name!r}: control {given.options["control"]!r} must be the same '
                'model, measured up to the same position, with every multiplier 1; its entropy is '
                f'{found}, where the other has {shape}, and its multipliers are '
                f'{control["multiplier"].min():g} to {control["multiplier"].max():g}'
            )
        multipliers = records['multiplier'].astype(np.float64)
        return claims.Heads(multipliers, _bits(records), _bits(control))

    def _records(self, given: FigureInput) -> Records:
        return given.records[given.options['record']]

    def picture(self, given: FigureInput, data: claims.Heads) -> mpl.Figure:
        length = int(position_curve.positions_of(self._records(given))[-1])
        figure = style.new_figure(6.2, 4.4)
        axes = figure.subplots()
        _scatter(axes, data.multipliers, data.bits, _layers(given, len(data.multipliers)))
        axes.set_xlabel('searched multiplier of 1/√H')
        axes.set_ylabel(f'entropy at position {length:,} (bits)')
        axes.set_ylim(0, max(1.0, np.log2(length)))
        axes.legend(loc='center left', bbox_to_anchor=(1.01, 0.5))
        return figure

    def rows(self, given: FigureInput, data: claims.Heads) -> Iterator[dict[str, Any]]:
        layers = _layers(given, len(data.multipliers))
        for layer, head in np.ndindex(data.multipliers.shape):
            yield {
                'record': given.options['record'],
                'layer': layer,
                'head': head,
                'multiplier': float(data.multipliers[layer, head]),
                'entropy_bits': float(data.bits[layer, head]),
                'as_trained_bits': float(data.as_trained[layer, head]),
                'drawn': int(layer in layers),
            }

    def caption(self, given: FigureInput, data: claims.Heads) -> str:
        records, label = self._records(given), given.options['label']
        length = int(position_curve.positions_of(records)[-1])
        return (
            'Searched multiplier of each head against its attention entropy at the last position, '
            f'{length:,}; one colour and one least-squares line a layer (from 0; r is the '
            'correlation, n/a where the multipliers of a layer are all equal or too few). The axis '
            f'ends at the bound log2({length:,}). {captions.sources({label: [records]})}'
        )


def _bits(records: Records) -> np.ndarray:
    """[layers, N] entropy at the last position in bits."""
    return records['entropy'][..., -1].astype(np.float64) * curves.BITS_PER_NAT


def _layers(given: FigureInput, count: int) -> list[int]:
    evenly = np.linspace(0, count - 1, min(count, MAX_LAYERS)).round().astype(int).tolist()
    layers = list(given.options.get('layers') or evenly)
    positions_known.check_layers(given.name, layers, count)
    return layers


def _scatter(
    axes: mpl.Axes, multipliers: np.ndarray, bits: np.ndarray, layers: Sequence[int]
) -> None:
    # From low to high layers along one map, so that depth can be read off the colour.
    colors = mpl.colormaps['viridis'](np.linspace(0, 0.92, len(layers)))
    for index, layer in enumerate(layers):
        x, y = multipliers[layer], bits[layer]
        r = curves.correlation(x, y)
        axes.scatter(
            x,
            y,
            s=22,
            color=colors[index],
            marker=MARKERS[index % len(MARKERS)],
            linewidths=0,
            alpha=0.85,
            label=f'layer {layer}: r = '
            + ('n/a' if r is None else f'{r:.2f}'.replace('-', '\N{MINUS SIGN}')),
        )
        if r is not None:
            slope, intercept = np.polyfit(x, y, 1)
            ends = np.array([x.min(), x.max()])
            axes.plot(ends, slope * ends + intercept, color=colors[index], linewidth=1.2)
