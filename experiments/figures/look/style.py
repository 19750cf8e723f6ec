"""The look of every figure: sizes, fonts, colours, and the few marks that they share."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.look import mpl

DPI = 200

# Okabe and Ito's palette, distinguishable under the common forms of colour blindness;
# without its yellow, which is too light for a line on white.
COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
RED, BLUE, BLACK, GREY = '#D55E00', '#0072B2', '#000000', '#6B6B6B'

# Of models that many figures show, by their labels.
MODELS: Mapping[str, str] = {
    'NoPE': COLORS[0],
    'ALiBi': COLORS[1],
    **dict.fromkeys(('RoPE', 'rope'), COLORS[2]),  # committed results call it 'RoPE'
    'T5 bias': COLORS[3],
    'forget gates': COLORS[4],
    'sinusoidal': COLORS[5],
}

RC = {
    'font.size': 9,
    'axes.titlesize': 10,
    'axes.labelsize': 9,
    'axes.grid': True,
    'axes.axisbelow': True,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.edgecolor': '#444444',
    'axes.linewidth': 0.8,
    'grid.color': '#E8E8E8',
    'grid.linewidth': 0.6,
    'legend.frameon': False,
    'legend.fontsize': 8,
    'lines.linewidth': 1.5,
    'xtick.labelsize': 8,
    'ytick.labelsize': 8,
    'pdf.fonttype': 42,  # TrueType, so that text in the PDF stays text
    'text.parse_math': False,  # a label of the user's may have dollar signs
}

# The second quantity of a figure with two axes.
DASHED: Mapping[str, Any] = {'linestyle': (0, (4, 1.5)), 'linewidth': 1.2}

BOUND = (0, (4, 3))  # line style of log2(i)

MAX_TICKS, FEW_TICKS = 8, 4


def colors_of(labels: Iterable[str], *, most: int = len(COLORS) + 1) -> dict[str, str]:
    """A colour for each label: models of `MODELS` have theirs in every figure, others the first of
    the palette that are left, of `most` colours, and then these again."""
    wanted = list(dict.fromkeys(labels))
    found = {label: MODELS[label] for label in wanted if label in MODELS}
    palette = (*COLORS, GREY)[:most]
    left = [color for color in palette if color not in found.values()] or list(palette)
    others = [label for label in wanted if label not in found]
    found |= dict(zip(others, itertools.cycle(left), strict=False))
    return {label: found[label] for label in wanted}


def house() -> Any:
    """Context in which figures are made and saved: matplotlib's defaults, then ours. A
    user's own matplotlibrc must not change what a figure looks like."""
    return mpl.style.context(['default', RC])


def new_figure(width: float, height: float) -> mpl.Figure:
    """A figure of `width` x `height` inches that is no part of pyplot's state."""
    return mpl.Figure(figsize=(width, height), layout='constrained')


def position_axis(axes: mpl.Axes, length: int, train_length: int, most: int = MAX_TICKS) -> None:
    """x from 0 to `length` with about `most` ticks, at multiples of the training length."""
    axes.set_xlim(0, length)
    step = train_length
    while length / step > most:
        step *= 2
    # Shorter than two training lengths: the line at L says where L is, ticks are quarters.
    step = step if length >= 2 * step else max(1, length // 4)
    axes.xaxis.set_major_locator(mpl.FixedLocator(range(0, length + 1, step)))
    axes.xaxis.set_major_formatter(mpl.StrMethodFormatter('{x:,.0f}'))
    axes.xaxis.set_minor_locator(mpl.NullLocator())
    axes.xaxis.set_minor_formatter(mpl.NullFormatter())


def plain_log_ticks(axis: mpl.XAxis | mpl.YAxis, base: float = 10) -> None:
    """Plain numbers at the ticks of a logarithmic axis, where matplotlib puts formulas."""

    class Plain(mpl.LogFormatter):
        def __call__(self, x: float, pos: int | None = None) -> str:
            return f'{x:g}' if super().__call__(x, pos) else ''

    axis.set_major_formatter(Plain(base))
    axis.set_minor_formatter(Plain(base))


def bound(axes: mpl.Axes, positions: np.ndarray) -> mpl.Line2D:
    """log2(i): the entropy, in bits, of attention spread evenly over the i visible tokens."""
    (line,) = axes.plot(
        positions, np.log2(positions), color=GREY, linestyle=BOUND, linewidth=0.8, zorder=1
    )
    line.set_label('bound log₂ i')
    return line


def training_length(axes: mpl.Axes, train_length: int) -> mpl.Line2D:
    line = axes.axvline(train_length, color=GREY, linestyle=':', linewidth=1.2, zorder=1)
    line.set_label(f'training length L = {train_length:,}')
    return line


def head_colors(count: int) -> np.ndarray:
    """One colour per head, [count, 4]; the light end of the map is left out."""
    return mpl.colormaps['viridis'](np.linspace(0, 0.88, count))


def legend_below(axes: mpl.Axes, curves: Sequence[mpl.Artist], marks: Sequence[mpl.Artist]) -> None:
    """Legend under the x label, 0.48 inches below the axes, where it covers no curve. The
    constrained layout makes room for it. Curves and marks do not mix in a column."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    lines = 2 if len(curves) <= 2 else max(len(curves), len(marks))
    handles = [*filled(curves, lines), *filled(marks, lines)]
    down = mpl.ScaledTranslation(0, -0.48, figure.dpi_scale_trans)
    axes.legend(
        handles=handles,
        ncols=len(handles) // lines,
        loc='upper center',
        bbox_to_anchor=(0.5, 0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0,
    )


def filled(handles: Sequence[mpl.Artist], lines: int) -> list[mpl.Artist]:
    """`handles` with invisible ones added until they fill columns of `lines`, so that others in
    the same legend begin a column of their own."""
    missing = -len(handles) % lines
    return [*handles, *(mpl.Line2D([], [], linestyle='none', label=' ') for _ in range(missing))]
