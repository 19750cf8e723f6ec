"""In-domain loss against loss far beyond L, one point a method, keys repeated as its colour."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import frontier as claims
from experiments.figures.given import FigureInput, check_differ, check_options
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.read import frontier_point, length_group
from experiments.figures.read.frontier_point import TIMES, FrontierPoint
from experiments.figures.roles import Roles

POINT_KEYS = {'label', 'loss', 'keys', 'four'}
COLORS = 'viridis'
# Nats above the lowest loss at `TIMES` L up to which methods share a panel of their own.
NEAR = 0.15
MARGIN = 0.12  # of a panel's range, on each side
LEVEL: dict[str, Any] = {'color': style.GREY, 'linestyle': (0, (4, 3)), 'linewidth': 0.9}
ABREAST = 0.03  # of the range of x: points closer than that stand one above the other
FRAME: dict[str, Any] = {'edgecolor': style.GREY, 'linewidth': 0.8, 'zorder': 1}


Points = Sequence[FrontierPoint]


@kind('frontier')
class FrontierFigure(Figure[Points]):
    """Loss at L against loss far beyond it, one point a method. Options:

    - points: [{label, loss, keys, four}], the last three names of records '<name>/<seed>': loss by
      length, single keys, and one of four keys. The last may be left out.
    - roles: of labels (claims/frontier.py).

    Windows of other lengths end at other tokens, so all losses need the same lengths.
    """

    OPTIONS, NEEDED = ('points', 'roles'), ('points',)
    SHARED = ('train_length',)
    RULES = claims.RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for point in options['points']:
            check_options(name, point, POINT_KEYS, ('label', 'loss', 'keys'), 'points')
            found[f'{point["loss"]}/'] = 'lengths'
            found |= {f'{point[k]}/': 'passkey' for k in ('keys', 'four') if point.get(k)}
        labels = [point['label'] for point in options['points']]
        check_differ(name, 'labels of points', labels)
        roles.check(name, options, roles.parts(claims.ROLES, labels, 'point'))
        return found

    def read(self, given: FigureInput) -> Points:
        points = [frontier_point.read(given, chosen) for chosen in given.options['points']]
        length_group.check_alike(given, [point.loss for point in points])
        return points

    def shown(self, given: FigureInput, points: Points) -> Roles[FrontierPoint]:
        return Roles(given.name, given.options, {p.label: p for p in points}, 'point')

    def picture(self, given: FigureInput, points: Points) -> mpl.Figure:
        token = captions.token_name(given.records[points[0].names[0]])
        corner = has_corner(points)
        figure = style.new_figure(12.0 if corner else 7.6, 5.8)
        panels = figure.subplots(1, 2 if corner else 1, squeeze=False)[0]
        near = best(points) if corner else []
        for axes, shown in zip(panels, (points, near), strict=False):
            # Each has its number once, in the panel where it has room.
            for point in points:
                _draw_point(axes, point)
            chosen = [x for x in enumerate(points, 1) if (x[1] in near) == (shown is near)]
            _write_numbers(axes, chosen)
            axes.axline((0, 0), slope=1, zorder=1, **LEVEL)
            for ends, set_limits in (
                ([p.x for p in shown], axes.set_xlim),
                ([p.y for p in shown], axes.set_ylim),
            ):
                low, high = np.min(ends), np.max(ends)
                margin = MARGIN * max(high - low, 0.02)
                set_limits(low - margin, high + margin)
            axes.set_xlabel(f'loss at L (nats per {token})')
            axes.set_ylabel(f'loss at {TIMES:g} L (nats per {token})')
        if corner:
            panels[0].set_title('all methods')
            panels[1].set_title(f'methods within {NEAR} nats of the lowest loss at {TIMES:g} L')
            (left, right), (low, high) = panels[1].get_xlim(), panels[1].get_ylim()
            frame = mpl.Rectangle((left, low), right - left, high - low, fill=False, **FRAME)
            panels[0].add_patch(frame)
        _legend(figure, points, panels)
        return figure

    def rows(self, given: FigureInput, points: Points) -> list[dict[str, Any]]:
        return [row for point in points for row in frontier_point.rows(point)]

    def caption(self, given: FigureInput, points: Points) -> str:
        seeds = len(points[0].x)
        train_length = given.records[points[0].names[0]].attributes['train_length']
        asked = dict.fromkeys(f'{p.keys.asked}, {p.keys.prompts} prompts a seed' for p in points)
        sentences = [
            f'One point a method. Across: mean loss of windows of the training length '
            f'L = {train_length:,}; up: of windows of {TIMES:g} L that end at the same tokens. On '
            'the dashed line both are equal, above it loss is lost with length. Colour: share of '
            f'prompts of {TIMES:g} L that are answered with exactly the key ({"; ".join(asked)}).',
            'One seed each.'
            if seeds == 1
            else f'Means over {seeds} seeds; whiskers: {length_axes.SPREAD}.',
            f'Right: the range of the methods within {NEAR} nats of the lowest loss at {TIMES:g} L.'
            if has_corner(points)
            else '',
            captions.sources({p.label: [given.records[name] for name in p.names] for p in points}),
        ]
        return ' '.join(sentence for sentence in sentences if sentence)


def best(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """Methods near the lowest loss at `TIMES` L, by means over seeds."""
    lowest = min(p.y.mean() for p in points)
    return [p for p in points if p.y.mean() <= lowest + NEAR]


def has_corner(points: Sequence[FrontierPoint]) -> bool:
    """True where several methods are near the lowest loss and others, far from it, hide them."""
    return 2 <= len(best(points)) < len(points)


def _draw_point(axes: mpl.Axes, point: FrontierPoint) -> None:
    """With whiskers from the smallest to the largest of several seeds."""
    x, y = float(point.x.mean()), float(point.y.mean())
    if len(point.x) > 1:
        for ends in (
            ([point.x.min(), point.x.max()], [y] * 2),
            ([x] * 2, [point.y.min(), point.y.max()]),
        ):
            axes.plot(*ends, color=style.GREY, linewidth=0.9, zorder=2)
    axes.plot(x, y, zorder=3, **_marker(point))


def _write_numbers(axes: mpl.Axes, points: Sequence[tuple[int, FrontierPoint]]) -> None:
    """At the ends of whiskers; of points one above the other at different ends."""
    places = sorted(points, key=lambda place: place[1].x.mean())
    across = [float(p.x.mean()) for _, p in places]
    apart = ABREAST * (max(across, default=0.0) - min(across, default=0.0))
    columns: list[list[tuple[int, FrontierPoint]]] = []
    last = -np.inf
    for x, place in zip(across, places, strict=True):
        if x - last > apart:
            columns.append([])
        columns[-1].append(place)
        last = x
    for column in columns:
        ordered = sorted(column, key=lambda place: place[1].y.mean())
        for (number, point), left in zip(ordered, itertools.cycle((True, False)), strict=False):
            end = point.x.min() if left else point.x.max()
            axes.annotate(
                *(str(number), (float(end), float(point.y.mean())), (-5.5 if left else 5.5, 0)),
                textcoords='offset points',
                ha='right' if left else 'left',
                va='center',
                fontsize=8,
                zorder=4,
            ).set_in_layout(False)


def _marker(point: FrontierPoint) -> dict[str, Any]:
    color = mpl.colormaps[COLORS](float(point.share.mean()))
    edge = {'markeredgecolor': style.BLACK, 'markeredgewidth': 0.6}
    return {'linestyle': 'none', 'marker': 'o', 'markersize': 7, 'color': color, **edge}


def _legend(
    figure: mpl.Figure, points: Sequence[FrontierPoint], panels: Sequence[mpl.Axes]
) -> None:
    bar = figure.colorbar(mpl.ScalarMappable(mpl.Normalize(0, 100), COLORS), ax=panels, pad=0.02)
    bar.set_label(f'keys repeated at {TIMES:g} L (%)')
    bar.outline.set_visible(False)
    handles = [
        mpl.Line2D([], [], label=f'{number}  {point.label}', **_marker(point))
        for number, point in enumerate(points, 1)
    ]
    handles.append(mpl.Line2D([], [], label=f'as low at {TIMES:g} L as at L', **LEVEL))
    seeds = len(points[0].x)
    if seeds > 1:
        label = f'{length_axes.SPREAD}, {seeds} seeds'
        handles.append(mpl.Line2D([], [], color=style.GREY, linewidth=0.9, label=label))
    columns = 4 if len(panels) > 1 else 3
    figure.legend(handles=handles, loc='outside lower center', ncols=columns, fontsize=8)
