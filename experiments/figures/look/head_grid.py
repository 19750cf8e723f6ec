"""One axes with the entropy of every head of one layer: shared by two figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figures.look import mpl, style

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
    return handles


def head_bar(figure: mpl.Figure, axes: list[mpl.Axes], count: int) -> None:
    """Colour bar that tells heads apart, beside all `axes`."""
    colors = mpl.ListedColormap(style.head_colors(count))
    edges = np.arange(count + 1) - 0.5
    mappable = mpl.ScalarMappable(mpl.BoundaryNorm(edges, count), colors)
    step = max(1, -(-count // MAX_TICKS))
    bar = figure.colorbar(
        mappable, ax=axes, ticks=np.arange(0, count, step), shrink=0.8, aspect=30, pad=0.015
    )
    bar.set_label('head')
    bar.ax.minorticks_off()
    bar.ax.grid(False)


def rows(
    record: str, label: str, layer: int, positions: np.ndarray, entropy_bits: np.ndarray
) -> list[dict[str, Any]]:
    """Long form of what `draw_layer` draws."""
    return [
        {
            'record': record,
            'label': label,
            'layer': layer,
            'head': head,
            'position': int(positions[i]),
            'entropy_bits': float(entropy_bits[head, i]),
        }
        for head in range(len(entropy_bits))
        for i in range(len(positions))
    ]
