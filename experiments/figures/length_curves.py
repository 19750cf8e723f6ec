"""Loss against the length of the sequence for every way to choose lambda (fig_dynamic)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.figures import captions, length_axes, length_group, roles, style
from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_choice,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.claims import lengths as claims
from experiments.figures.claims.decide import decide
from experiments.figures.length_axes import MARKERS, PANELS
from experiments.figures.length_group import Group
from experiments.figures.roles import Roles

OPTIONS = {'curves', 'band', 'roles'}


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('curves',))
    check_choice(name, 'band', options.get('band', 'min-max'), length_axes.BANDS)
    chosen = options['curves']
    if len(chosen) > len(style.COLORS):
        raise ValueError(
            f'figure {name!r}: curves must be 1 to {len(style.COLORS)}, got {len(chosen)}'
        )
    for curve in chosen:
        check_options(name, curve, ('group', 'label'), ('group',), 'curves')
    roles.check(name, options, roles.parts(claims.ROLES, [c['group'] for c in chosen]))
    return {f'{c["group"]}/': 'lengths' for c in chosen}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label}] of records '<group>/<seed>'; roles of groups
    (claims/lengths.py); band, 'min-max' (default) or 'std', drawn for two seeds or more."""
    check_records(given, required(given.name, given.options))
    groups = _groups(given)
    band = given.options.get('band', 'min-max')
    names = [name for g in groups for name in g.names]
    token = captions.token_name(given.records[names[0]])
    train_length = shared_attribute(given, names, 'train_length')
    figure = style.new_figure(10.0, 4.6)
    axes = figure.subplots(1, len(PANELS))
    for (measure, title), ax in zip(PANELS.items(), axes, strict=True):
        _draw_panel(measure, ax, groups, band)
        ax.set_title(title)
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
        decide(claims.RULES, _roles(given, groups)),
        runs_of(given, names),
    )


def _groups(given: FigureInput) -> list[Group]:
    groups = [
        length_group.read(given, c['group'], c.get('label', c['group']))
        for c in given.options['curves']
    ]
    length_group.check_alike(given, groups)
    return groups


def _roles(given: FigureInput, groups: Sequence[Group]) -> Roles[Group]:
    found = Roles(given.name, given.options, {group.name: group for group in groups})
    roles.check_searched(given, claims.HEADSCALE, {group.name: group.names for group in groups})
    return found


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
