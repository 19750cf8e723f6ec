"""Share of keys repeated against the length of the prompt, one curve a model and kind of prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import keys as claims
from experiments.figures.given import FigureInput, check_count, check_options
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import key_group
from experiments.figures.read.by_seed import check_seeds
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.roles import Roles


@kind('key_curves')
class KeyCurvesFigure(Figure[Sequence[KeyGroup]]):
    """Options: curves, [{group, label}] of records '<group>/<seed>', which may have been asked for
    keys at different lengths; roles of groups (claims/keys.py)."""

    OPTIONS, NEEDED = ('curves', 'roles'), ('curves',)
    SHARED = ('train_length',)
    RULES = claims.RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        chosen = options['curves']
        check_count(name, 'curves', len(chosen), len(style.COLORS))
        for curve in chosen:
            check_options(name, curve, ('group', 'label'), ('group',), 'curves')
        roles.check(name, options, roles.parts(claims.ROLES, [c['group'] for c in chosen]))
        return {f'{c["group"]}/': 'passkey' for c in chosen}

    def read(self, given: FigureInput) -> list[KeyGroup]:
        groups = [
            key_group.read(given, c['group'], c.get('label', c['group']))
            for c in given.options['curves']
        ]
        check_seeds(given, groups)
        return groups

    def shown(self, given: FigureInput, groups: Sequence[KeyGroup]) -> Roles[KeyGroup]:
        return Roles(given.name, given.options, {group.name: group for group in groups})

    def picture(self, given: FigureInput, groups: Sequence[KeyGroup]) -> mpl.Figure:
        figure = style.new_figure(7.0, 4.6)
        axes = figure.subplots()
        colors = style.colors_of((g.label for g in groups), most=len(style.COLORS))
        for group, marker in zip(groups, MARKERS, strict=False):
            color, percent = colors[group.label], 100 * group.shares
            look: dict[str, Any] = {'color': color, 'marker': marker, 'linewidth': 1.4}
            axes.plot(group.multiples, percent.mean(axis=0), markersize=4, **look)
            length_axes.draw_band(axes, group.multiples, percent, color)
        length_axes.set_axis(axes, np.unique(np.concatenate([g.multiples for g in groups])))
        axes.set_xlabel('length of the prompt n / L')
        axes.set_ylabel('keys repeated (%)')
        axes.set_ylim(-3, 103)
        handles: list[Any] = [
            mpl.Line2D([], [], color=color, marker=marker, markersize=4, label=label)
            for (label, color), marker in zip(colors.items(), MARKERS, strict=False)
        ]
        handles += length_axes.band_handle(len(groups[0].seeds))
        figure.legend(handles=handles, loc='outside lower center', ncols=2)
        return figure

    def rows(self, given: FigureInput, groups: Sequence[KeyGroup]) -> list[dict[str, Any]]:
        return [row for g in groups for row in key_group.rows(g, given.records)]

    def caption(self, given: FigureInput, groups: Sequence[KeyGroup]) -> str:
        train_length = groups[0].train_length
        found: dict[str, list[str]] = {}
        for g in groups:
            found.setdefault(f'{g.asked}, {g.prompts} prompts a seed', []).append(g.label)
        prompts = '; '.join(f'{fact} ({"; ".join(labels)})' for fact, labels in found.items())
        labelled = {g.label: [given.records[name] for name in g.names] for g in groups}
        return (
            'Share of prompts answered with exactly the key, mean over its depths, against the '
            f'nominal length n of the prompt with its answer, in multiples of the training length '
            f'L = {train_length:,}. Prompts of each length: {prompts}. '
            f'{length_axes.seeds_caption(len(groups[0].seeds))} {captions.sources(labelled)}'
        )
