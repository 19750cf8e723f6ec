"""Shared parts of figures of loss against sequence length: panels, axis, band, caption."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments.figures.look import mpl, style

SPREAD = 'smallest to largest'  # of the seeds
MARKERS = 'osD^vP*'
# Fields of `Group` -> titles of the panels that show them.
PANELS: Mapping[str, str] = {
    'loss_window': 'mean over the whole window',
    'loss_tail': 'mean over the last L/2 positions',
}


def titles(tail: int | None, token: str) -> Mapping[str, str]:
    """As `PANELS`, where the tail is so many positions and not L/2. token: what a position is."""
    if tail is None:
        return PANELS
    return {**PANELS, 'loss_tail': f'mean over the last {tail:,} {token}s'}


def set_axis(axes: mpl.Axes, multiples: np.ndarray) -> None:
    """x at the lengths measured, in multiples of L, evenly spaced by doubling."""
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(mpl.FixedLocator(multiples.tolist()))
    axes.xaxis.set_major_formatter(mpl.FuncFormatter(lambda x, _: f'{x:.3g}'))
    axes.xaxis.set_minor_locator(mpl.NullLocator())
    axes.set_xlabel('length of the sequence n / L')


def draw_band(axes: mpl.Axes, multiples: np.ndarray, loss: np.ndarray, color: str) -> None:
    """From the smallest to the largest `loss` [seeds, n]; nothing for one seed."""
    if len(loss) > 1:
        ends = loss.min(axis=0), loss.max(axis=0)
        axes.fill_between(multiples, *ends, color=color, alpha=0.15, linewidth=0)


def band_handle(seeds: int) -> list[mpl.Patch]:
    """For the legend; empty for one seed."""
    if seeds < 2:
        return []
    return [mpl.Patch(color=style.GREY, alpha=0.2, label=f'{SPREAD}, {seeds} seeds')]


def panels_caption(train_length: int, tail: int | None = None, token: str = 'token') -> str:
    last = 'L/2 positions' if tail is None else f'{tail:,} {token}s'
    return (
        'Loss against the length n of the sequence, in multiples of the training length '
        f'L = {train_length:,}. Left: mean over the window. Right: mean over its last '
        f'{last}. Windows of all lengths end at the same tokens.'
    )


def seeds_caption(seeds: int, *, shaded: bool = True) -> str:
    count = 'one seed' if seeds == 1 else f'{seeds} seeds'
    spread = f'; shaded: {SPREAD} of the seeds' if seeds > 1 and shaded else ''
    return f'Mean over {count}{spread}. Nothing is smoothed.'
