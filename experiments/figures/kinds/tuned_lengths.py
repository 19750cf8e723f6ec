"""Loss by sequence length of models fine-tuned at longer lengths, next to the base model's."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.lengths import rise
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
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
from experiments.figures.roles import Roles, Shape, Undecided

PI, YARN = 'pi', 'yarn'
FAIR, RAW = 'fair', 'raw'
METHODS: Mapping[str, Shape] = {PI: Shape.ONE, YARN: Shape.ONE}
BUDGETS: Mapping[str, Shape] = {FAIR: Shape.ONE, RAW: Shape.ONE}

MAX_PANELS = 3
# Black is the base model's.
COLORS = tuple(c for c in style.COLORS if c != style.BLACK)
LINES = ((0, (1, 1.2)), (0, (4, 1.5)), '-', (0, (5, 1.5, 1, 1.5)))
RING: dict[str, Any] = {
    'linestyle': 'none',
    'marker': 'o',
    'markersize': 10,
    'markerfacecolor': 'none',
    'markeredgewidth': 1.4,
}


@dataclasses.dataclass(frozen=True)
class TunedCurve:
    """A model fine-tuned at a longer length, as one curve of a panel.

    panel: title of the panel. method: what it shares with the same method at other lengths and in
    other panels. tuned: length of the fine-tuning in multiples of L.
    """

    panel: str
    method: str
    tuned: float
    group: Group

    @property
    def name(self) -> str:
        """Unique in a figure."""
        return f'{self.group.label} ({self.panel})' if self.panel else self.group.label

    @property
    def at_tuned(self) -> int:
        """Index of the length it was tuned at."""
        index = self.group.at(self.tuned)
        assert index is not None
        return index

    @property
    def window_at_tuned(self) -> np.ndarray:
        """[seeds] mean loss over windows of the length it was tuned at."""
        return self.group.loss_window[:, self.at_tuned]


@dataclasses.dataclass(frozen=True)
class Tuned:
    """The base model, and what was tuned from it. roles: names of methods and titles of panels,
    which stand for budgets."""

    base: Group
    curves: Sequence[TunedCurve]
    roles: Roles[str]

    def check_windows(self) -> None:
        """Undecided unless all were measured on the same windows."""
        length_group.check_windows([self.base, *(c.group for c in self.curves)])

    def find(self, panel: str, method: str, tuned: float) -> TunedCurve | None:
        found = (c for c in self.curves if (c.panel, c.method, c.tuned) == (panel, method, tuned))
        return next(found, None)


def _largest_inside(shown: Tuned) -> dict[str, np.ndarray]:
    """[S] of each curve at the length from L to its own where the mean over seeds is largest."""
    base = shown.base
    shown.check_windows()
    start = base.at(1)
    if start is None:
        raise Undecided('windows of L were not measured')
    found = {}
    for c in shown.curves:
        inside = (base.multiples >= 1) & (base.multiples <= c.tuned)
        above = c.group.loss_window - base.loss_window[:, [start]]
        found[c.name] = above[:, int(np.argmax(np.where(inside, above.mean(axis=0), -np.inf)))]
    return found


def _past_tuned(shown: Tuned) -> dict[str, np.ndarray]:
    cases = ((c.name, rise(c.group, c.tuned)) for c in shown.curves)
    return {name: found for name, found in cases if found is not None}


def _yarn_less_pi(shown: Tuned) -> dict[str, np.ndarray]:
    pi, yarn = shown.roles[PI], shown.roles[YARN]
    shown.check_windows()
    return {
        f'{c.tuned:g} L ({c.panel})' if c.panel else f'{c.tuned:g} L': c.window_at_tuned
        - other.window_at_tuned
        for c in shown.curves
        if c.method == yarn and (other := shown.find(c.panel, pi, c.tuned))
    }


def _raw_less_fair(shown: Tuned) -> dict[str, np.ndarray]:
    fair, raw = shown.roles[FAIR], shown.roles[RAW]
    shown.check_windows()
    return {
        f'{c.method} at {c.tuned:g} L': c.window_at_tuned - other.window_at_tuned
        for c in shown.curves
        if c.panel == raw and (other := shown.find(fair, c.method, c.tuned))
    }


RULES: tuple[Rule[Tuned], ...] = (
    Rule(
        'tuned_works',
        'Largest mean loss over windows from L to the tuned length less that of the base model at '
        'L, for every curve',
        Every(_largest_inside, Bound(BELOW, 'nats'), 'largest tuned - base at L'),
    ),
    Rule(
        'tuned_fails',
        'Loss of the last L/2 positions at twice the tuned length less that at the tuned length, '
        'for every curve measured there',
        Every(_past_tuned, Bound(ABOVE, 'nats'), 'smallest rise to twice the length'),
    ),
    Rule(
        'yarn_below_pi',
        'Mean loss over windows of the tuned length with YaRN less that with PI, for every length '
        'and budget',
        Every(_yarn_less_pi, Bound(BELOW, 'nats'), 'highest YaRN - PI'),
        (PI, YARN),
    ),
    Rule(
        'more_tuning',
        'Mean loss over windows of the tuned length with the larger budget less that with the '
        'smaller one, for every method and length',
        Every(_raw_less_fair, Bound(BELOW, 0, 'nats'), 'highest raw - fair'),
        (FAIR, RAW),
    ),
)


@kind('tuned_lengths')
class TunedLengthsFigure(Figure[Tuned]):
    """Loss by length of fine-tuned models. Options:

    - base: {group, label}.
    - panels: up to three of {title, curves: [{group, label, tuned, method}]}. tuned: length of the
      fine-tuning in multiples of L. method: the curves of one colour.
    - roles: of methods and of titles (`METHODS`, `BUDGETS`).
    """

    OPTIONS, NEEDED = ('base', 'panels', 'roles'), ('base', 'panels')
    SHARED = ('train_length',)
    RULES = RULES
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
        accepted = roles.parts(METHODS, methods, 'method')
        roles.check(name, options, accepted | roles.parts(BUDGETS, titles, 'panel'))
        return {f'{c["group"]}/': 'lengths' for c in (base, *drawn)}

    def read(self, given: FigureInput) -> Tuned:
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
        # Methods and panels go by their own names.
        players = {name: name for curve in curves for name in (curve.method, curve.panel)}
        found = Roles(given.name, given.options, players, 'method or panel')
        return Tuned(base, curves, found)

    def picture(self, given: FigureInput, data: Tuned) -> mpl.Figure:
        """Each panel twice: whole, and below it close up to what lies inside the tuned lengths."""
        base, curves = data.base, data.curves
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

    def rows(self, given: FigureInput, data: Tuned) -> Iterator[dict[str, Any]]:
        base, curves = data.base, data.curves
        about: dict[str, Any] = {'panel': None, 'method': None, 'tuned_over_L': None}
        yield from (about | row for row in length_group.rows(base, given.records))
        for c in curves:
            about = {'panel': c.panel, 'method': c.method, 'tuned_over_L': c.tuned}
            yield from (about | row for row in length_group.rows(c.group, given.records))

    def caption(self, given: FigureInput, data: Tuned) -> str:
        base, curves = data.base, data.curves
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
    axes.plot(curve.tuned, mean[curve.at_tuned], color=color, **RING)


def _look(index: int) -> dict[str, Any]:
    """Of the index-th tuned length."""
    return {
        'linestyle': LINES[index],
        'marker': MARKERS[index],
        'markersize': 3.5,
        'linewidth': 1.3,
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
    ring = mpl.Line2D([], [], color=style.GREY, label='loss at the tuned length', **RING)
    marks = [ring, *length_axes.band_handle(len(base.seeds))]
    lines = max(len(models), len(tuned), len(marks))
    return [h for column in (models, tuned, marks) for h in style.filled(column, lines)]
