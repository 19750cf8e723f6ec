"""Loss by sequence length of models fine-tuned at longer lengths, next to the base model's."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import tuned as claims
from experiments.figures.given import (
    FigureInput,
    check_count,
    check_differ,
    check_multiple,
    check_options,
)
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import length_group
from experiments.figures.read.length_group import Group
from experiments.figures.read.tuned_curve import TunedCurve
from experiments.figures.roles import Roles

MAX_PANELS = 3
# Black is the base model's.
COLORS = tuple(c for c in style.COLORS if c != style.BLACK)
LINES = ((0, (1, 1.2)), (0, (4, 1.5)), '-', (0, (5, 1.5, 1, 1.5)))


Tuning = tuple[Group, Sequence[TunedCurve]]  # the base model, and what was tuned from it


@kind('tuned_lengths')
class TunedLengthsFigure(Figure[Tuning]):
    """Loss by length of fine-tuned models. Options:

    - base: {group, label}.
    - panels: up to three of {title, curves: [{group, label, tuned, method}]}. tuned: length of the
      fine-tuning in multiples of L. method: the curves of one colour.
    - roles: of methods and of titles (claims/tuned.py).
    """

    OPTIONS, NEEDED = ('base', 'panels', 'roles'), ('base', 'panels')
    SHARED = ('train_length',)
    RULES = claims.RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        base, panels = options['base'], options['panels']
        check_options(name, base, ('group', 'label'), ('group',), 'base')
        check_count(name, 'panels', len(panels), MAX_PANELS)
        for panel in panels:
            check_options(name, panel, ('title', 'curves'), ('curves',), 'panels')
            for curve in panel['curves']:
                keys = ('group', 'label', 'method', 'tuned')
                check_options(name, curve, keys, keys, 'curves')
                if not isinstance(curve['tuned'], numbers.Real):
                    raise ValueError(
                        f'figure {name!r}: tuned must be a multiple of L, got {curve["tuned"]!r}'
                    )
        _check_told_apart(name, panels)
        drawn = [curve for panel in panels for curve in panel['curves']]
        methods = list(dict.fromkeys(curve['method'] for curve in drawn))
        titles = [panel.get('title', '') for panel in panels]
        accepted = roles.parts(claims.METHODS, methods, 'method')
        roles.check(name, options, accepted | roles.parts(claims.BUDGETS, titles, 'panel'))
        return {f'{c["group"]}/': 'lengths' for c in (base, *drawn)}

    def read(self, given: FigureInput) -> Tuning:
        chosen = given.options['base']
        base = length_group.read(given, chosen['group'], chosen.get('label', chosen['group']))
        curves = []
        for panel in given.options['panels']:
            for c in panel['curves']:
                group = length_group.read(given, c['group'], c['label'])
                title = panel.get('title', '')
                curves.append(TunedCurve(title, c['method'], float(c['tuned']), group))
        length_group.check_alike(given, [base, *(c.group for c in curves)])
        for curve in curves:
            if curve.group.at(curve.tuned) is None:
                raise ValueError(
                    f'figure {given.name!r}: {curve.group.name!r} was tuned at {curve.tuned:g} L, '
                    f'but measured at {curve.group.multiples.tolist()} L'
                )
            check_multiple(given, curve.group.names, 'tuned_length', curve.tuned)
        return base, curves

    def shown(self, given: FigureInput, data: Tuning) -> claims.Tuned:
        """With roles of methods and of panels, which go by their own names."""
        base, curves = data
        names = [name for curve in curves for name in (curve.method, curve.panel)]
        players = {name: name for name in names}
        found = Roles(given.name, given.options, players, 'method or panel')
        return claims.Tuned(base, curves, found)

    def picture(self, given: FigureInput, data: Tuning) -> mpl.Figure:
        """Each panel twice: whole, and below it close up to what lies inside the tuned lengths."""
        base, curves = data
        panels = list(dict.fromkeys(c.panel for c in curves))
        figure = style.new_figure(4.9 * len(panels) + (0.8 if len(panels) == 1 else 0), 7.0)
        axes = figure.subplots(2, len(panels), squeeze=False, sharex=True, sharey='row')
        colors = dict(zip(dict.fromkeys(c.method for c in curves), COLORS, strict=False))
        lengths = sorted({c.tuned for c in curves})
        for title, column in zip(panels, axes.T, strict=True):
            drawn = [c for c in curves if c.panel == title]
            for ax in column:
                loss = base.loss_window.astype(np.float64)
                ax.plot(base.multiples, loss.mean(axis=0), color=style.BLACK, linewidth=1.4)
                length_axes.draw_band(ax, base.multiples, loss, style.BLACK)
                for curve in drawn:
                    _draw_curve(ax, curve, colors[curve.method], lengths.index(curve.tuned))
            length_axes.set_axis(column[-1], base.multiples)
            column[0].set_title(title)
        token = captions.token_name(given.records[base.names[0]])
        axes[0, 0].set_ylabel(f'mean loss over the window (nats per {token})')
        axes[1, 0].set_ylabel('the same, close up')
        axes[1, 0].set_ylim(_close_up(base, curves))
        handles = _handles(base, colors, lengths)
        figure.legend(handles=handles, loc='outside lower center', ncols=3)
        return figure

    def rows(self, given: FigureInput, data: Tuning) -> Iterator[dict[str, Any]]:
        base, curves = data
        about: dict[str, Any] = {'panel': None, 'method': None, 'tuned_over_L': None}
        yield from (about | row for row in length_group.rows(base, given.records))
        for c in curves:
            about = {'panel': c.panel, 'method': c.method, 'tuned_over_L': c.tuned}
            yield from (about | row for row in length_group.rows(c.group, given.records))

    def caption(self, given: FigureInput, data: Tuning) -> str:
        base, curves = data
        train_length = given.records[base.names[0]].attributes['train_length']
        labelled = {base.label: base, **{c.name: c.group for c in curves}}
        trained = captions.sources(
            {label: [given.records[n] for n in g.names] for label, g in labelled.items()}
        )
        return (
            'Mean loss over windows of n tokens, which all end at the same tokens, against n in '
            f'multiples of the training length L = {train_length:,}: the base model, and models '
            'fine-tuned at a longer length with scaled positions, every weight of them. Below: the '
            'same, close up. Rings: the loss at the length of the fine-tuning. '
            f'{length_axes.seeds_caption(len(base.seeds))} {trained}'
        )


def _check_told_apart(name: str, panels: Sequence[Mapping[str, Any]]) -> None:
    """ValueError where a title or a label stands twice, or colours or lines do not suffice."""
    drawn = [curve for panel in panels for curve in panel['curves']]
    check_differ(name, 'titles of panels', [panel.get('title', '') for panel in panels])
    for panel in panels:
        check_differ(name, 'labels of a panel', [curve['label'] for curve in panel['curves']])
    check_count(name, 'methods', len({curve['method'] for curve in drawn}), len(COLORS))
    check_count(name, 'tuned lengths', len({curve['tuned'] for curve in drawn}), len(LINES))


def _close_up(base: Group, curves: Sequence[TunedCurve]) -> tuple[float, float]:
    """Limits for the losses up to the tuned lengths, and the base model's up to L."""
    shown = [(base, 1.0), *((c.group, c.tuned) for c in curves)]
    inside = [g.loss_window.mean(axis=0)[g.multiples <= limit] for g, limit in shown]
    low, high = float(np.concatenate(inside).min()), float(np.concatenate(inside).max())
    margin = 0.15 * max(high - low, 0.05)
    return low - margin, high + margin


def _draw_curve(axes: mpl.Axes, curve: TunedCurve, color: str, index: int) -> None:
    multiples, loss = curve.group.multiples, curve.group.loss_window.astype(np.float64)
    mean = loss.mean(axis=0)
    axes.plot(multiples, mean, color=color, **_look(index))
    length_axes.draw_band(axes, multiples, loss, color)
    axes.plot(curve.tuned, mean[curve.at_tuned], color=color, **_ring())


def _look(index: int) -> dict[str, Any]:
    """Of the index-th tuned length."""
    return {
        'linestyle': LINES[index],
        'marker': MARKERS[index],
        'markersize': 3.5,
        'linewidth': 1.3,
    }


def _ring() -> dict[str, Any]:
    return {
        'linestyle': 'none',
        'marker': 'o',
        'markersize': 10,
        'markerfacecolor': 'none',
        'markeredgewidth': 1.4,
    }


def _handles(base: Group, colors: Mapping[str, str], lengths: Sequence[float]) -> list[mpl.Artist]:
    """Columns of models, of lengths and of marks."""
    models = [
        mpl.Line2D([], [], color=style.BLACK, linewidth=1.4, label=base.label),
        *(mpl.Line2D([], [], color=color, linewidth=3, label=m) for m, color in colors.items()),
    ]
    tuned = [
        mpl.Line2D([], [], color=style.GREY, label=f'tuned at {length:g} L', **_look(i))
        for i, length in enumerate(lengths)
    ]
    ring = mpl.Line2D([], [], color=style.GREY, label='loss at the tuned length', **_ring())
    marks = [ring, *length_axes.band_handle(len(base.seeds))]
    lines = max(len(models), len(tuned), len(marks))
    return [h for column in (models, tuned, marks) for h in style.filled(column, lines)]
