"""Axes with the entropy of every head of one layer: shared by two figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from experiments.figures.look import captions, mpl, style
from nope.records import Records

# Beyond this many heads single curves cannot be told apart by colour anyway: every second,
# fourth ... tick of the colour bar is left out.
MAX_TICKS = 8


def draw_layer(
    axes: mpl.Axes, positions: np.ndarray, entropy_bits: np.ndarray, train_length: int
) -> list[mpl.Line2D]:
    """Returns handles of the lines that are no head's. entropy_bits: [N, P] of N heads at P of the
    positions."""
    handles = [style.bound(axes, positions), style.training_length(axes, train_length)]
    for head, color in enumerate(style.head_colors(len(entropy_bits))):
        axes.plot(positions, entropy_bits[head], color=color, linewidth=0.8)
    style.position_axis(axes, int(positions[-1]), train_length, most=style.FEW_TICKS)
    return handles


def finish(
    figure: mpl.Figure, axes: np.ndarray, records: Records, length: int, handles: list[mpl.Line2D]
) -> None:
    """Axes up to the bound at position `length`, labels, legend, and a colour bar of the heads."""
    axes[0, 0].set_ylim(0, 1.04 * np.log2(length))
    figure.supxlabel(f'position ({captions.token_name(records)}s)', fontsize=9)
    figure.supylabel('attention entropy (bits)', fontsize=9)
    count = records['entropy'].shape[1]
    colors = mpl.ListedColormap(style.head_colors(count))
    mappable = mpl.ScalarMappable(mpl.BoundaryNorm(np.arange(count + 1) - 0.5, count), colors)
    ticks = np.arange(0, count, max(1, -(-count // MAX_TICKS)))
    bar = figure.colorbar(
        mappable, ax=list(axes.flat), ticks=ticks, shrink=0.8, aspect=30, pad=0.015
    )
    bar.set_label('head')
    bar.ax.minorticks_off()
    bar.ax.grid(False)
    figure.legend(handles=handles, loc='outside upper center', ncols=len(handles))


def rows(
    record: str, label: str, layer: int, positions: np.ndarray, entropy_bits: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Long form of what `draw_layer` draws."""
    for head, i in np.ndindex(entropy_bits.shape):
        yield {
            'record': record,
            'label': label,
            'layer': layer,
            'head': head,
            'position': int(positions[i]),
            'entropy_bits': float(entropy_bits[head, i]),
        }
