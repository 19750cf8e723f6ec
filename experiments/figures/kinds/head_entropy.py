"""Entropy of every head of every layer of one model (the paper's Figure 10)."""

from __future__ import annotations

from collections.abc import Mapping
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
from experiments.figures.look import captions, head_grid, style
from experiments.figures.read import curves, position_curve

OPTIONS = {'record', 'label'}
COLUMNS = 4
POINTS = 64


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Record name -> evaluation. ValueError for options that figure `name` of this kind does
    not have."""
    check_options(name, options, OPTIONS)
    return {options.get('record', 'headscale'): 'positions'}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: record (default 'headscale') and its label."""
    needs = required(given.name, given.options)
    check_records(given, needs)
    name = next(iter(needs))
    label = given.options.get('label', name)
    records = given.records[name]
    kept = curves.thin(records['entropy'].shape[-1], POINTS)
    positions = position_curve.positions_of(records)[kept]
    bits = records['entropy'][..., kept].astype(np.float64) * curves.BITS_PER_NAT
    layers, heads = bits.shape[:2]
    length, train_length = int(positions[-1]), int(records.attributes['train_length'])
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
        handles = head_grid.draw_layer(ax, positions, bits[layer], train_length)
        style.position_axis(ax, length, train_length, most=style.FEW_TICKS)
        ax.set_title(f'layer {layer}', fontsize=9)
    axes[0, 0].set_ylim(0, 1.04 * np.log2(length))
    token = captions.token_name(records)
    figure.supxlabel(f'position ({token}s)', fontsize=9)
    figure.supylabel('attention entropy (bits)', fontsize=9)
    head_grid.head_bar(figure, list(axes.flat), heads)
    figure.legend(handles=handles, loc='outside upper center', ncols=len(handles))
    caption = (
        f'Attention entropy of every head against position, one panel a layer (from 0), every '
        f'{int(positions[-1] - positions[-2]):,} positions, not smoothed. Dashed: the bound '
        'log2(i) of even attention. Dotted: the training length L. '
        + captions.sources({label: [records]})
    )
    rows = [
        row for la in range(layers) for row in head_grid.rows(name, label, la, positions, bits[la])
    ]
    share = bits[..., -1].mean(axis=1) / np.log2(length)
    found = decide(claims.LAYERS, share)
    return FigureOutput(given.name, figure, rows, caption, found, runs_of(given, [name]))
