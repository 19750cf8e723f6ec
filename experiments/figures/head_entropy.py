"""Entropy of every head of every layer of one model (the paper's Figure 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures import captions, curves, head_grid, position_curve, style
from experiments.figures.base import (
    Claim,
    FigureInput,
    FigureOutput,
    check_options,
    check_records,
    runs_of,
)

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
        head_grid.draw_layer(ax, positions, bits[layer], train_length)
        style.position_axis(ax, length, train_length, most=style.FEW_TICKS)
        ax.set_title(f'layer {layer}', fontsize=9)
    axes[0, 0].set_ylim(0, 1.04 * np.log2(length))
    token = captions.token_name(records)
    figure.supxlabel(f'position ({token}s)', fontsize=9)
    figure.supylabel('attention entropy (bits)', fontsize=9)
    head_grid.head_bar(figure, list(axes.flat), heads)
    caption = (
        f'Attention entropy of every head against position, one panel a layer (from 0), every '
        f'{int(positions[-1] - positions[-2]):,} positions, not smoothed. Dashed: the bound '
        'log2(i) of even attention. Dotted: the training length L. '
        + captions.sources({label: [records]})
    )
    rows = [
        row for la in range(layers) for row in head_grid.rows(name, label, la, positions, bits[la])
    ]
    claims = [_low_layers(bits[..., -1], length)] if layers > 1 else []
    return FigureOutput(given.name, figure, rows, caption, claims, runs_of(given, [name]))


def _low_layers(bits: np.ndarray, length: int) -> Claim:
    """bits: [layers, N] at the last position, which sees `length` tokens."""
    share = bits.mean(axis=1) / np.log2(length)
    low = max(1, len(share) // 3)
    return Claim(
        None,
        'Low layers lie near the upper bound of the entropy (Figure 10).',
        {
            'share_of_bound_by_layer': share.tolist(),
            'lowest_third': share[:low].mean(),
            'others': share[low:].mean(),
        },
        bool(share[:low].mean() > share[low:].mean()),
        'At the last position the mean entropy of the lowest third of the layers is a larger '
        'share of log2(i) than that of the others.',
    )
