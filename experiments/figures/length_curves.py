"""Loss against the length of the sequence for every way to choose lambda (fig_dynamic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.figures import captions, length_axes, length_claims, length_group, style
from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_choice,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.length_axes import MARKERS, PANELS
from experiments.figures.length_group import Group

OPTIONS = {'curves', 'band'}
CURVES = (
    {'group': 'base', 'label': 'base'},
    {'group': 'uniform', 'label': 'best uniform scale for each n'},
    {'group': 'headscale_4x', 'label': 'HeadScale searched at 4 L', 'tuned': 4},
    {'group': 'headscale_8x', 'label': 'HeadScale searched at 8 L', 'tuned': 8},
    {'group': 'log_length', 'label': 'log-length searched up to 4 L', 'tuned': 4},
)


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS)
    check_choice(name, 'band', options.get('band', 'min-max'), length_axes.BANDS)
    chosen = options.get('curves', CURVES)
    if not 1 <= len(chosen) <= len(style.COLORS):
        raise ValueError(
            f'figure {name!r}: curves must be 1 to {len(style.COLORS)}, got {len(chosen)}'
        )
    for curve in chosen:
        check_options(name, curve, ('group', 'label', 'tuned'), ('group',), 'curves')
    return {f'{c["group"]}/': 'lengths' for c in chosen}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, tuned}] with tuned the length of the search in multiples
    of L (default: CURVES); band, 'min-max' (default) or 'std', drawn for two seeds or more."""
    check_records(given, required(given.name, given.options))
    groups = _groups(given)
    band = given.options.get('band', 'min-max')
    names = [name for g in groups for name in g.names]
    token = captions.token_name(given.records[names[0]])
    train_length = shared_attribute(given, names, 'train_length')
    figure = style.new_figure(10.0, 4.6)
    axes = figure.subplots(1, len(PANELS))
    for panel, ax in zip(PANELS, axes, strict=True):
        _draw_panel(panel.measure, ax, groups, band)
        ax.set_title(panel.title)
        ax.set_ylabel(f'loss (nats per {token})')
    seeds = len(groups[0].seeds)
    handles: list[Any] = [
        Line2D([], [], color=style.COLORS[i], marker=MARKERS[i], markersize=4, label=g.label)
        for i, g in enumerate(groups)
    ]
    handles += length_axes.band_handle(seeds, band)
    figure.legend(handles=handles, loc='outside lower center', ncols=3)
    labelled = {g.label: [given.records[name] for name in g.names] for g in groups}
    caption = (
        f'{length_axes.panels_caption(train_length)} {length_axes.seeds_caption(seeds, band)} '
        f'{captions.sources(labelled)}'
    )
    return FigureOutput(
        given.name,
        figure,
        [row for g in groups for row in length_group.rows(g, given.records)],
        caption,
        length_claims.from_groups(groups),
        runs_of(given, names),
    )


def _groups(given: FigureInput) -> list[Group]:
    groups = [
        length_group.read(given, c['group'], c.get('label', c['group']), c.get('tuned'))
        for c in given.options.get('curves', CURVES)
    ]
    length_group.check_alike(given, groups)
    return groups


def _draw_panel(measure: str, axes: Axes, groups: Sequence[Group], band: str) -> None:
    for index, group in enumerate(groups):
        color = style.COLORS[index]
        loss = getattr(group, measure).astype(np.float64)
        axes.plot(
            group.multiples,
            loss.mean(axis=0),
            color=color,
            marker=MARKERS[index],
            markersize=4,
            linewidth=1.4,
        )
        length_axes.draw_band(axes, group.multiples, loss, color, band)
    length_axes.set_axis(axes, groups[0].multiples)
