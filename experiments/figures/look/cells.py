"""Cells of shares with their numbers, from red through yellow to green."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.figures.look import mpl

COLORS = ('#F0496E', '#EBB839', '#0CD79F')  # of 0, half and all


def colormap() -> mpl.LinearSegmentedColormap:
    """An odd number of colours has the yellow at exactly 0.5."""
    return mpl.LinearSegmentedColormap.from_list('shares', COLORS, N=257)


def draw(axes: mpl.Axes, values: np.ndarray, top: float, form: str) -> None:
    """Rows of cells from 0 to `top`, from above. form: of the numbers."""
    axes.pcolormesh(values, cmap=colormap(), vmin=0, vmax=top, edgecolors='white', linewidth=0.5)
    for (row, column), value in np.ndenumerate(values):
        place = (column + 0.5, row + 0.5)
        cell = axes.text(*place, format(value, form), ha='center', va='center', fontsize=7)
        # It lies inside the axes; the layout would measure it for nothing.
        cell.set_in_layout(False)
    axes.invert_yaxis()
    no_frame(axes)


def no_frame(axes: mpl.Axes) -> None:
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def add_bar(figure: mpl.Figure, axes: Sequence[mpl.Axes], top: float, label: str) -> None:
    scale = mpl.ScalarMappable(mpl.Normalize(0, top), colormap())
    bar = figure.colorbar(scale, ax=axes, aspect=30, pad=0.01)
    bar.set_label(label)
    bar.outline.set_visible(False)
