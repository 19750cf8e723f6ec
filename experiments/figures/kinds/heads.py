"""Entropy of every head in a few layers, model by model (the paper's Figure 3)."""

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
    shared_attribute,
)
from experiments.figures.claims import heads as claims
from experiments.figures.claims.decide import decide
from experiments.figures.look import captions, head_grid, style
from experiments.figures.read import curves, position_curve, positions_known
from experiments.figures.roles import told_apart

# Attributes that all of its records share.
SHARED = ('train_length', 'length', 'n_heads')
check_known = positions_known.with_layers
OPTIONS = {'rows', 'layers'}
POINTS = 512


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Record name -> evaluation, of the rows of the figure. ValueError for options that figure
    `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('rows',))
    for row in options['rows']:
        check_options(name, row, ('record', 'label'), ('record',), 'rows')
    return {row['record']: 'positions' for row in options['rows']}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: rows, [{record, label}]; layers, indices from 0 (default: first, middle, last)."""
    check_records(given, required(given.name, given.options))
    labels = {r['record']: r.get('label', r['record']) for r in given.options['rows']}
    train_length, length, count = (shared_attribute(given, list(labels), x) for x in SHARED)
    layers = _layers(given, list(labels))
    figure = style.new_figure(2.5 * len(layers) + 0.9, 1.8 * len(labels) + 0.7)
    axes = figure.subplots(len(labels), len(layers), squeeze=False, sharex=True, sharey=True)
    kept = curves.thin(length, POINTS)
    rows: list[dict[str, Any]] = []
    for row, (record, label) in zip(axes, labels.items(), strict=True):
        records = given.records[record]
        positions = position_curve.positions_of(records)[kept]
        for ax, layer in zip(row, layers, strict=True):
            bits = records['entropy'][layer][:, kept].astype(np.float64) * curves.BITS_PER_NAT
            handles = head_grid.draw_layer(ax, positions, bits, train_length)
            style.position_axis(ax, length, train_length, most=style.FEW_TICKS)
            ax.set_title(f'{label}, layer {layer}', fontsize=9)
            rows += head_grid.rows(record, label, layer, positions, bits)
    axes[0, 0].set_ylim(0, 1.04 * np.log2(length))
    token = captions.token_name(given.records[next(iter(labels))])
    figure.supxlabel(f'position ({token}s)', fontsize=9)
    figure.supylabel('attention entropy (bits)', fontsize=9)
    head_grid.head_bar(figure, list(axes.flat), count)
    figure.legend(handles=handles, loc='outside upper center', ncols=len(handles))
    labelled = {label: given.records[r] for r, label in told_apart(labels).items()}
    caption = (
        'Attention entropy of each head against position, one curve a head, every head drawn '
        f'({len(kept):,} of {length:,} positions, not smoothed). Rows: '
        f'{"; ".join(labels.values())}. Columns: layers {", ".join(map(str, layers))} (from 0). '
        'Dashed: the bound log2(i) of even attention. Dotted: the training length L. '
        + captions.sources({label: [record] for label, record in labelled.items()})
    )
    found = decide(claims.APART, labelled)
    return FigureOutput(given.name, figure, rows, caption, found, runs_of(given, list(labels)))


def _layers(given: FigureInput, names: Sequence[str]) -> list[int]:
    count = min(given.records[n]['entropy'].shape[0] for n in names)
    layers = given.options.get('layers') or sorted({0, count // 2, count - 1})
    wrong = [layer for layer in layers if not 0 <= layer < count]
    if wrong:
        raise ValueError(
            f'figure {given.name!r}: layers must lie in 0..{count - 1}, got {wrong[0]}'
        )
    return list(layers)
