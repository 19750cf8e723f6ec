"""Cells of accuracies with their numbers, from red through yellow to green."""

from __future__ import annotations

import numpy as np

from experiments.figures.look import mpl

COLORS = ('#F0496E', '#EBB839', '#0CD79F')  # of 0, half and all


def colormap() -> mpl.LinearSegmentedColormap:
    """An odd number of colours has the yellow at exactly 0.5."""
    return mpl.LinearSegmentedColormap.from_list('shares', COLORS, N=257)


def draw(axes: mpl.Axes, shares: np.ndarray) -> None:
    """Rows of cells, from above."""
    axes.pcolormesh(shares, cmap=colormap(), vmin=0, vmax=1, edgecolors='white', linewidth=0.5)
    for (row, column), value in np.ndenumerate(shares):
        place = (column + 0.5, row + 0.5)
        cell = axes.text(*place, format(value, '.1f'), ha='center', va='center', fontsize=7)
        # It lies inside the axes; the layout would measure it for nothing.
        cell.set_in_layout(False)
    axes.invert_yaxis()
    no_frame(axes)


def no_frame(axes: mpl.Axes) -> None:
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def add_bar(figure: mpl.Figure) -> None:
    """A bar of colours beside all axes."""
    scale = mpl.ScalarMappable(mpl.Normalize(0, 1), colormap())
    bar = figure.colorbar(scale, ax=figure.axes, aspect=30, pad=0.01)
    bar.set_label('accuracy')
    bar.outline.set_visible(False)
