"""Keys repeated far beyond L against the loss at L: one dot a training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import frontier as claims
from experiments.figures.given import FigureInput, check_count, check_differ, check_options
from experiments.figures.look import captions, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import frontier_point, key_group, length_group
from experiments.figures.read.by_seed import check_seeds
from experiments.figures.read.key_group import KeyGroup
from experiments.figures.read.length_group import Group
from experiments.figures.roles import Roles, Shape

POINT_KEYS = ('label', 'loss', 'keys', 'searched')
TIMES = (16.0, 32.0, 64.0)  # of L, a panel each


@dataclasses.dataclass(frozen=True)
class Method:
    """The trainings of one method, for every seed.

    loss, keys: as trained. searched: keys under a lambda that is 1 up to L; None where there is
    none.
    """

    label: str
    loss: Group
    keys: KeyGroup
    searched: KeyGroup | None

    @property
    def at_l(self) -> np.ndarray:
        """[S] mean loss of windows of L, nats."""
        index = self.loss.at(1)
        assert index is not None
        return self.loss.loss_window[:, index]

    @property
    def groups(self) -> list[KeyGroup]:
        return [self.keys] if self.searched is None else [self.keys, self.searched]


@kind('reach')
class ReachFigure(Figure[Sequence[Method]]):
    """One dot a training: keys repeated at several lengths, over the loss at L. Options:

    - points: [{label, loss, keys, searched}], the last three names of records '<name>/<seed>': loss
      by length, single keys, and those of the same models with lambda, which may be left out.
    - roles: split, the label of the method that the claim speaks of.
    """

    OPTIONS, NEEDED = ('points', 'roles'), ('points',)
    SHARED = ('train_length',)
    RULES = claims.REACH

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        points = options['points']
        check_count(name, 'points', len(points), len(style.COLORS))
        found: dict[str, str] = {}
        for point in points:
            check_options(name, point, POINT_KEYS, POINT_KEYS[:3], 'points')
            found[f'{point["loss"]}/'] = 'lengths'
            found |= {f'{point[k]}/': 'passkey' for k in POINT_KEYS[2:] if point.get(k)}
        labels = [point['label'] for point in points]
        check_differ(name, 'labels of points', labels)
        roles.check(name, options, roles.parts({claims.SPLIT: Shape.ONE}, labels, 'point'))
        return found

    def read(self, given: FigureInput) -> list[Method]:
        methods = []
        for point in given.options['points']:
            label = point['label']
            searched = point.get('searched')
            method = Method(
                label=label,
                loss=length_group.read(given, point['loss'], label),
                keys=key_group.read(given, point['keys'], label),
                searched=key_group.read(given, searched, label) if searched else None,
            )
            check_seeds(given, [method.loss, *method.groups])
            frontier_point.check_runs(given, method.loss, method.keys)
            if method.loss.at(1) is None:
                raise ValueError(f'figure {given.name!r}: {point["loss"]!r} lacks the length L')
            for group in method.groups:
                for multiple in TIMES:
                    if group.at(multiple) is None:
                        raise ValueError(
                            f'figure {given.name!r}: {group.name!r} was asked for keys at '
                            f'{group.multiples.tolist()} L, not at {multiple:g} L'
                        )
            methods.append(method)
        return methods

    def shown(self, given: FigureInput, methods: Sequence[Method]) -> Roles[Method]:
        return Roles(given.name, given.options, {m.label: m for m in methods}, 'point')

    def picture(self, given: FigureInput, methods: Sequence[Method]) -> mpl.Figure:
        figure = style.new_figure(3.6 * len(TIMES) + 0.6, 4.2)
        panels = figure.subplots(1, len(TIMES), sharey=True)
        colors = style.colors_of((m.label for m in methods), most=len(style.COLORS))
        for axes, multiple in zip(panels, TIMES, strict=True):
            for method, marker in zip(methods, MARKERS, strict=False):
                look = {'color': colors[method.label], 'marker': marker}
                _draw(axes, method, multiple, look)
            axes.set_title(f'prompts of {multiple:g} L')
            axes.set_xlabel(f'loss at L (nats per {token_of(given, methods)})')
            axes.set_ylim(-4, 104)
        panels[0].set_ylabel('keys repeated (%)')
        handles = [
            mpl.Line2D([], [], linestyle='none', marker=marker, color=color, label=label)
            for (label, color), marker in zip(colors.items(), MARKERS, strict=False)
        ]
        if any(method.searched for method in methods):
            dot: dict[str, Any] = {'linestyle': 'none', 'marker': 'o', 'color': style.GREY}
            handles += [
                mpl.Line2D([], [], label='as trained', markerfacecolor='none', **dot),
                mpl.Line2D([], [], label='with lambda', **dot),
            ]
        figure.legend(handles=handles, loc='outside lower center', ncols=3)
        return figure

    def rows(self, given: FigureInput, methods: Sequence[Method]) -> list[dict[str, Any]]:
        return [
            {
                'label': method.label,
                'seed': seed,
                'lambda': group is method.searched,
                'length_over_L': multiple,
                'loss_at_L_nats': float(method.at_l[s]),
                'share_of_keys': float(group.shares[s, group.at(multiple)]),
                'prompts': group.prompts,
                'loss_record': method.loss.names[s],
                'keys_record': group.names[s],
            }
            for method in methods
            for group in method.groups
            for s, seed in enumerate(method.loss.seeds)
            for multiple in TIMES
        ]

    def caption(self, given: FigureInput, methods: Sequence[Method]) -> str:
        train_length = methods[0].keys.train_length
        asked = dict.fromkeys(
            f'{group.asked}, {group.prompts} prompts a training and length'
            for method in methods
            for group in method.groups
        )
        searched = [method.label for method in methods if method.searched]
        records = {
            m.label: [
                given.records[name]
                for names in (m.loss.names, *(g.names for g in m.groups))
                for name in names
            ]
            for m in methods
        }
        sentences = [
            'One dot a training. Across: its mean loss of windows of the training length '
            f'L = {train_length:,}. Up: share of prompts that are answered with exactly the key '
            f'({"; ".join(asked)}).',
            'Open: as trained. Filled, joined by a line: with lambda, searched with the weights '
            f'frozen ({"; ".join(searched)}).'
            if searched
            else '',
            captions.sources(records),
        ]
        return ' '.join(sentence for sentence in sentences if sentence)


def token_of(given: FigureInput, methods: Sequence[Method]) -> str:
    return captions.token_name(given.records[methods[0].loss.names[0]])


def _draw(axes: mpl.Axes, method: Method, multiple: float, look: dict[str, Any]) -> None:
    first, *searched = [100 * g.shares[:, g.at(multiple)] for g in method.groups]
    for x, low, *high in zip(method.at_l, first, *searched, strict=True):
        if high:
            axes.plot([x, x], [low, *high], color=look['color'], linewidth=0.8, alpha=0.6)
    dots = {'linestyle': 'none', 'markersize': 6, **look}
    axes.plot(method.at_l, first, **dots, markerfacecolor='none')
    for shares in searched:
        axes.plot(method.at_l, shares, **dots)
