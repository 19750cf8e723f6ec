"""Share of keys repeated against the length of the prompt, one curve a model and kind of prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import (
    Claim,
    FigureInput,
    FigureOutput,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.claims import keys as claims
from experiments.figures.claims.decide import decide
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import key_group
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.roles import Roles

# Attributes that all of its records share.
SHARED = ('train_length',)
OPTIONS = {'curves', 'roles'}


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS, ('curves',))
    chosen = options['curves']
    if len(chosen) > len(style.COLORS):
        raise ValueError(
            f'figure {name!r}: curves must be 1 to {len(style.COLORS)}, got {len(chosen)}'
        )
    for curve in chosen:
        check_options(name, curve, ('group', 'label'), ('group',), 'curves')
    roles.check(name, options, roles.parts(claims.ROLES, [c['group'] for c in chosen]))
    return {f'{c["group"]}/': 'passkey' for c in chosen}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label}] of records '<group>/<seed>', which may have been asked for
    keys at different lengths; roles of groups (claims/keys.py)."""
    check_records(given, required(given.name, given.options))
    groups = _groups(given)
    _check_seeds(given, groups)
    names = [name for g in groups for name in g.names]
    (train_length,) = (shared_attribute(given, names, x) for x in SHARED)
    seeds = len(groups[0].seeds)
    figure = style.new_figure(7.0, 4.6)
    axes = figure.subplots()
    _draw(axes, groups)
    handles: list[Any] = [
        mpl.Line2D([], [], color=color, marker=marker, markersize=4, label=label)
        for (label, color), marker in zip(_colors(groups).items(), MARKERS, strict=False)
    ]
    handles += length_axes.band_handle(seeds)
    figure.legend(handles=handles, loc='outside lower center', ncols=2)
    return FigureOutput(
        given.name,
        figure,
        [row for g in groups for row in key_group.rows(g, given.records)],
        _caption(given, groups, train_length),
        decided(given),
        runs_of(given, names),
    )


def decided(given: FigureInput) -> list[Claim]:
    """Claims of an input that `draw` accepts."""
    groups = {group.name: group for group in _groups(given)}
    return decide(claims.RULES, Roles(given.name, given.options, groups))


def _groups(given: FigureInput) -> list[KeyGroup]:
    return [
        key_group.read(given, c['group'], c.get('label', c['group']))
        for c in given.options['curves']
    ]


def _check_seeds(given: FigureInput, groups: Sequence[KeyGroup]) -> None:
    first = groups[0]
    for g in groups[1:]:
        if g.seeds != first.seeds:
            raise ValueError(
                f'figure {given.name!r}: {g.name!r} has the seeds {list(g.seeds)}, '
                f'{first.name!r} has {list(first.seeds)}'
            )


def _colors(groups: Sequence[KeyGroup]) -> dict[str, str]:
    return style.colors_of((g.label for g in groups), most=len(style.COLORS))


def _draw(axes: mpl.Axes, groups: Sequence[KeyGroup]) -> None:
    colors = _colors(groups)
    for index, group in enumerate(groups):
        color, percent = colors[group.label], 100 * group.shares
        axes.plot(
            group.multiples,
            percent.mean(axis=0),
            color=color,
            marker=MARKERS[index],
            markersize=4,
            linewidth=1.4,
        )
        length_axes.draw_band(axes, group.multiples, percent, color)
    length_axes.set_axis(axes, np.unique(np.concatenate([g.multiples for g in groups])))
    axes.set_xlabel('length of the prompt n / L')
    axes.set_ylabel('keys repeated (%)')
    axes.set_ylim(-3, 103)


def _caption(given: FigureInput, groups: Sequence[KeyGroup], train_length: int) -> str:
    found: dict[str, list[str]] = {}
    for g in groups:
        found.setdefault(f'{g.asked}, {g.prompts} prompts a seed', []).append(g.label)
    prompts = '; '.join(f'{fact} ({"; ".join(labels)})' for fact, labels in found.items())
    labelled = {g.label: [given.records[name] for name in g.names] for g in groups}
    return (
        'Share of prompts answered with exactly the key, mean over its depths, against the nominal '
        f'length n of the prompt with its answer, in multiples of the training length '
        f'L = {train_length:,}. Prompts of each length: {prompts}. '
        f'{length_axes.seeds_caption(len(groups[0].seeds))} {captions.sources(labelled)}'
    )
