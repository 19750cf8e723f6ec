"""Entropy of every head over training, a colour a layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.figures.look import mpl, style


def draw(axes: mpl.Axes, steps: np.ndarray, bits_SLH: np.ndarray, bound: float) -> None:
    """Lines of heads at S steps, below their bound in bits."""
    for bits_SH, color in zip(
        np.moveaxis(bits_SLH, 1, 0), style.head_colors(bits_SLH.shape[1]), strict=True
    ):
        axes.plot(steps, bits_SH, color=color, linewidth=1.0)
    axes.axhline(bound, color=style.GREY, linestyle=style.BOUND, linewidth=0.8)
    axes.set_ylim(bottom=0)


def layer_handles(layers: int) -> list[mpl.Line2D]:
    """Of the layers, of many the first and the last."""
    return [
        mpl.Line2D([], [], color=color, label=f'layer {layer}')
        for layer, color in enumerate(style.head_colors(layers))
        if layers <= 8 or layer in (0, layers - 1)
    ]


def bound_handle() -> mpl.Line2D:
    looks: dict[str, Any] = {'color': style.GREY, 'linestyle': style.BOUND, 'linewidth': 0.8}
    return mpl.Line2D([], [], label='bound: mean of log2 i', **looks)
