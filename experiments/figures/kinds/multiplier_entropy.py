"""Searched multiplier of each head against its entropy (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_options,
    check_records,
    runs_of,
)
from experiments.figures.claims import heads as claims
from experiments.figures.claims.decide import decide
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves, position_curve, positions_known
from nope.records import Records

check_known = positions_known.with_layers
OPTIONS = {'record', 'control', 'label', 'layers'}
MAX_LAYERS = 7
MARKERS = 'osD^vP*X'


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Record name -> evaluation. ValueError for options that figure `name` of this kind does
    not have."""
    check_options(name, options, OPTIONS)
    names = (options.get('record', 'headscale'), options.get('control'))
    return {name: 'positions' for name in names if name is not None}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: record (default 'headscale'); control, the record of the same model without the
    multipliers, by which the claim is decided; label, layers (default: up to seven, evenly)."""
    needs = required(given.name, given.options)
    check_records(given, needs)
    name = next(iter(needs))
    label = given.options.get('label', name)
    records = given.records[name]
    multipliers = records['multiplier'].astype(np.float64)
    bits = _bits(records)
    as_trained = None if len(needs) == 1 else _as_trained(given, records)
    layers = _layers(given, len(multipliers))
    length = int(position_curve.positions_of(records)[-1])
    figure = style.new_figure(6.2, 4.4)
    axes = figure.subplots()
    _scatter(axes, multipliers, bits, layers)
    axes.set_xlabel('searched multiplier of 1/√H')
    axes.set_ylabel(f'entropy at position {length:,} (bits)')
    axes.set_ylim(0, max(1.0, np.log2(length)))
    axes.legend(loc='center left', bbox_to_anchor=(1.01, 0.5))
    caption = (
        'Searched multiplier of each head against its attention entropy at the last position, '
        f'{length:,}; one colour and one least-squares line a layer (from 0; r is the correlation, '
        'n/a where the multipliers of a layer are all equal or too few). The axis ends at the '
        f'bound log2({length:,}). {captions.sources({label: [records]})}'
    )
    rows = [
        {
            'record': name,
            'layer': layer,
            'head': head,
            'multiplier': float(multipliers[layer, head]),
            'entropy_bits': float(bits[layer, head]),
            **({} if as_trained is None else {'as_trained_bits': float(as_trained[layer, head])}),
            'drawn': int(layer in layers),
        }
        for layer, head in np.ndindex(multipliers.shape)
    ]
    found = decide(claims.CORRELATIONS, claims.Heads(multipliers, bits, as_trained))
    return FigureOutput(given.name, figure, rows, caption, found, runs_of(given, list(needs)))


def _bits(records: Records) -> np.ndarray:
    """[layers, N] entropy at the last position in bits."""
    return records['entropy'][..., -1].astype(np.float64) * curves.BITS_PER_NAT


def _as_trained(given: FigureInput, records: Records) -> np.ndarray:
    """[layers, N] of the control. ValueError where it is no measurement of the same heads without
    multipliers up to the same position."""
    name = given.options['control']
    control = given.records[name]
    if control['entropy'].shape != records['entropy'].shape or (control['multiplier'] != 1).any():
        raise ValueError(
            f'figure {given.name!r}: control {name!r} must be the same model, measured up to the '
            f'same position, with every multiplier 1; its entropy is {control["entropy"].shape}, '
            f'where the other has {records["entropy"].shape}, and its multipliers are '
            f'{control["multiplier"].min():g} to {control["multiplier"].max():g}'
        )
    return _bits(control)


def _layers(given: FigureInput, count: int) -> list[int]:
    evenly = np.linspace(0, count - 1, min(count, MAX_LAYERS)).round().astype(int).tolist()
    layers = list(given.options.get('layers') or evenly)
    wrong = [layer for layer in layers if not 0 <= layer < count]
    if wrong:
        raise ValueError(
            f'figure {given.name!r}: layers must lie in 0..{count - 1}, got {wrong[0]}'
        )
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
