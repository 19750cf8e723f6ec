"""Extensions without training, whose factor is chosen on other windows, by sequence length."""

from __future__ import annotations

import dataclasses
import functools
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.claims.intervals import Interval, stated
from experiments.figures.claims.verdict import ABOVE, BELOW, RULE, Bound, every
from experiments.figures.given import FigureInput, check_count, check_differ, check_options
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.length_axes import MARKERS, PANELS
from experiments.figures.read import length_group
from experiments.figures.read.length_group import Group, by_length
from experiments.figures.roles import Roles, Shape, Undecided

NTK, YARN, HEADSCALE = 'ntk', 'yarn', 'headscale'
METHODS: Mapping[str, Shape] = {NTK: Shape.ONE, YARN: Shape.ONE}  # of curves with a grid
GROUPS: Mapping[str, Shape] = {HEADSCALE: Shape.BY_MULTIPLE}  # of curves without one

BEST, SINGLE = 'best factor for each length', 'one factor for all lengths'
TAIL = 'loss of the last L/2 positions'
FLAT = CLAIMS['yarn_flat'].thresholds['nats']


@dataclasses.dataclass(frozen=True)
class Method:
    """A method with a factor, and the factors chosen for it on other windows than it is shown on.

    reported[i], choice[i]: the model under factors[i] on the windows shown and on the other
    ones. All have the same seeds and lengths, of which at least one is above L.
    """

    label: str
    factors: tuple[float, ...]
    reported: tuple[Group, ...]
    choice: tuple[Group, ...]

    @property
    def multiples(self) -> np.ndarray:
        return self.reported[0].multiples

    @functools.cached_property
    def per_length(self) -> np.ndarray:
        """[n] index of the factor with the lowest mean loss over the window, mean over seeds; at
        a tie the first."""
        return np.argmin(self._scores, axis=0)

    @functools.cached_property
    def overall(self) -> int:
        """Index of the factor with the lowest mean of that loss over the lengths above L."""
        return int(np.argmin(self._scores[:, self.multiples > 1].mean(axis=1)))

    @property
    def factors_per_length(self) -> list[float]:
        return [self.factors[i] for i in self.per_length]

    @property
    def factor_overall(self) -> float:
        return self.factors[self.overall]

    def best(self, measure: str) -> np.ndarray:
        """[seeds, n] loss on the windows shown, with the factor chosen for each length."""
        return self._shown(measure)[self.per_length, :, np.arange(len(self.multiples))].T

    def single(self, measure: str) -> np.ndarray:
        """[seeds, n] loss on the windows shown, with one factor for all lengths."""
        return self._shown(measure)[self.overall]

    @functools.cached_property
    def _scores(self) -> np.ndarray:
        """[factors, n]"""
        return np.stack([g.loss_window.mean(axis=0, dtype=np.float64) for g in self.choice])

    def _shown(self, measure: str) -> np.ndarray:
        """[factors, seeds, n]"""
        return np.stack([getattr(g, measure) for g in self.reported]).astype(np.float64)


Curve = Group | Method


def _factors(curves: Roles[Any]) -> Measured:
    """The factors and their losses: a reading, nothing to decide."""
    methods = [m for m in curves.players.values() if isinstance(m, Method)]
    if not methods:
        raise Undecided('no curve has a grid of factors')
    measured = {
        m.label: {
            'factors': list(m.factors),
            'factor_for_each_length': by_length(m.multiples, np.array(m.factors_per_length)),
            'factor_for_all_lengths': m.factor_overall,
            'loss_window_nats': {
                BEST: by_length(m.multiples, m.best('loss_window').mean(axis=0)),
                SINGLE: by_length(m.multiples, m.single('loss_window').mean(axis=0)),
            },
        }
        for m in methods
    }
    told = (number(f'{m.label}: factor for all lengths', m.factor_overall) for m in methods)
    return measured, None, tuple(told)


def _yarn_flat(curves: Roles[Any]) -> Measured:
    ntk, yarn = curves[NTK], curves[YARN]
    if 1 not in ntk.factors:
        raise Undecided(f'the grid of {ntk.label!r} has no factor 1, the model as it was trained')
    as_trained = ntk.reported[ntk.factors.index(1)]
    start, longest = as_trained.at(1), int(np.argmax(ntk.multiples))
    if start is None:
        raise Undecided('windows of L were not measured')
    rises = {
        which: {
            m.label: Interval.of(
                chosen(m, 'loss_tail')[:, longest] - as_trained.loss_tail[:, start]
            )
            for m in (yarn, ntk)
        }
        for which, chosen in ((BEST, Method.best), (SINGLE, Method.single))
    }
    measured = {
        'longest_in_L': ntk.multiples[longest],
        'rise_from_L_to_longest_nats': {which: stated(found) for which, found in rises.items()},
    }
    flat, other = (rises[BEST][m.label] for m in (yarn, ntk))
    apart = Interval.of(np.subtract(other.by_seed, flat.by_seed))
    holds = every((Bound(BELOW, FLAT).holds(flat), Bound(ABOVE, FLAT).holds(apart)))
    told = (number('YaRN rises by', flat, 'nats'), number('NTK by', other, 'nats'))
    return measured, holds, told


def _ahead(role: str, side: str, name: str) -> Every[Roles[Any]]:
    """HeadScale, of several searches the lowest at the longest length, less a method there."""

    def find(curves: Roles[Any]) -> dict[str, np.ndarray]:
        scaled: list[Group] = list(curves.by_multiple(HEADSCALE).values())
        longest = int(np.argmax(scaled[0].multiples))
        head = min(scaled, key=lambda g: float(g.loss_tail[:, longest].mean()))
        return {'': (head.loss_tail - curves[role].best('loss_tail'))[:, longest]}

    return Every(find, Bound(side, 0, 'nats'), f'HeadScale - {name}')


RULES: tuple[Rule[Roles[Any]], ...] = (
    Rule(
        'factors',
        'Factors chosen by the mean loss over windows other than those whose losses are given.',
        _factors,
        (NTK,),
    ),
    Rule(
        'yarn_flat',
        f'From that of the model as trained at L to the longest length the {TAIL} rises by less '
        f'than {FLAT} nats with YaRN, and by that much more with '
        f'dynamic NTK, both with the best factor for each length; {RULE}.',
        _yarn_flat,
        (NTK, YARN),
    ),
    Rule(
        'between_ntk_and_yarn',
        f'The {TAIL} at the longest length with HeadScale, of several searches the lowest, less '
        'that of NTK and of YaRN, each with its best factor for the length',
        (_ahead(NTK, BELOW, 'NTK'), _ahead(YARN, ABOVE, 'YaRN')),
        (HEADSCALE, NTK, YARN),
    ),
)


@kind('factor_grid')
class FactorGridFigure(Figure[Sequence[Curve]]):
    """Options: curves, [{label, group}] of records '<group>/<seed>', or with a factor
    [{label, grid: [{factor, group, choice}]}], `choice` the same model on other windows; roles of
    labels (`METHODS`, `GROUPS`)."""

    OPTIONS, NEEDED = ('curves', 'roles'), ('curves',)
    SHARED = ('train_length',)
    RULES = RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        curves = options['curves']
        check_count(name, 'curves', len(curves), len(style.COLORS))
        for curve in curves:
            check_options(name, curve, ('label', 'group', 'grid'), ('label',), 'curves')
            if bool(curve.get('group')) == bool(curve.get('grid')):
                raise ValueError(
                    f'figure {name!r}: {curve["label"]!r} must give either group or grid'
                )
            _check_grid(name, curve)
        check_differ(name, 'labels of curves', [curve['label'] for curve in curves])
        grids = [curve['label'] for curve in curves if curve.get('grid')]
        groups = [curve['label'] for curve in curves if curve.get('group')]
        accepted = roles.parts(METHODS, grids, 'curve with a grid')
        accepted |= roles.parts(GROUPS, groups, 'curve without a grid')
        roles.check(name, options, accepted)
        return {f'{group}/': 'lengths' for curve in curves for group in _groups_of(curve)}

    def read(self, given: FigureInput) -> list[Curve]:
        curves = [_read(given, chosen) for chosen in given.options['curves']]
        groups = [group for curve in curves for group in _all(curve)]
        length_group.check_alike(given, groups)
        if not (groups[0].multiples > 1).any():
            raise ValueError(
                f'figure {given.name!r}: no length above L was measured to choose a factor for; '
                f'there are {groups[0].multiples.tolist()} L'
            )
        names = {curve.label: curve.names for curve in curves if isinstance(curve, Group)}
        roles.check_length(given, HEADSCALE, names)
        return curves

    def shown(self, given: FigureInput, curves: Sequence[Curve]) -> Roles[Curve]:
        return Roles(given.name, given.options, {curve.label: curve for curve in curves})

    def picture(self, given: FigureInput, curves: Sequence[Curve]) -> mpl.Figure:
        token = captions.token_name(given.records[_all(curves[0])[0].names[0]])
        figure = style.new_figure(10.0, 4.8)
        axes = figure.subplots(1, len(PANELS))
        colors = style.colors_of((c.label for c in curves), most=len(style.COLORS))
        looks = [_look(colors[c.label], marker) for c, marker in zip(curves, MARKERS, strict=False)]
        for (measure, title), ax in zip(PANELS.items(), axes, strict=True):
            for curve, look in zip(curves, looks, strict=True):
                _draw_curve(ax, curve, measure, look)
            length_axes.set_axis(ax, curves[0].multiples)
            ax.set_title(title)
            ax.set_ylabel(f'loss (nats per {token})')
        pairs = zip(curves, looks, strict=True)
        handles: list[Any] = [handle for curve, look in pairs for handle in _handles(curve, look)]
        handles += length_axes.band_handle(len(_all(curves[0])[0].seeds))
        figure.legend(handles=handles, loc='outside lower center', ncols=3)
        return figure

    def rows(self, given: FigureInput, curves: Sequence[Curve]) -> Iterator[dict[str, Any]]:
        for curve in curves:
            if isinstance(curve, Group):
                nothing = {'factor': None, 'chosen_per_length': None, 'chosen_overall': None}
                yield from (row | nothing for row in _rows_of(given, curve, 'reported'))
                continue
            for index, factor in enumerate(curve.factors):
                chosen_at = set(curve.multiples[curve.per_length == index].tolist())
                for group, role in (
                    (curve.reported[index], 'reported'),
                    (curve.choice[index], 'choice'),
                ):
                    for row in _rows_of(given, group, role):
                        yield row | {
                            'factor': factor,
                            'chosen_per_length': row['length_over_L'] in chosen_at,
                            'chosen_overall': index == curve.overall,
                        }

    def caption(self, given: FigureInput, curves: Sequence[Curve]) -> str:
        first = given.records[_all(curves[0])[0].names[0]]
        methods = [curve for curve in curves if isinstance(curve, Method)]
        labelled = {
            curve.label: [
                given.records[name]
                for group in ([curve] if isinstance(curve, Group) else curve.reported)
                for name in group.names
            ]
            for curve in curves
        }
        chosen_on = dict.fromkeys(
            captions.measured_on(given.records[name])
            for method in methods
            for group in method.choice
            for name in group.names
        )
        return ' '.join(
            [
                length_axes.panels_caption(first.attributes['train_length']),
                *([_choice(methods, ' and '.join(chosen_on))] if methods else []),
                length_axes.seeds_caption(len(_all(curves[0])[0].seeds)),
                captions.sources(labelled),
            ]
        )


def _rows_of(given: FigureInput, group: Group, role: str) -> Iterator[dict[str, Any]]:
    """role: whether the factor is chosen on these windows or reported on them."""
    for row in length_group.rows(group, given.records):
        split = given.records[row['record']].attributes['split']
        yield row | {'role': role, 'split': split}


def _check_grid(name: str, curve: Mapping[str, Any]) -> None:
    where = f'the grid of {curve["label"]!r}'
    grid = curve.get('grid') or ()
    for entry in grid:
        keys = ('factor', 'group', 'choice')
        check_options(name, entry, keys, keys, where)
        if not isinstance(entry['factor'], numbers.Real):
            raise ValueError(
                f'figure {name!r}: a factor in {where} must be a number, got {entry["factor"]!r}'
            )
        if entry['group'] == entry['choice']:
            raise ValueError(
                f'figure {name!r}: {where} must be chosen on other windows than it is shown on, '
                f'got {entry["group"]!r} for both'
            )
    check_differ(name, f'factors in {where}', [entry['factor'] for entry in grid])


def _groups_of(curve: Mapping[str, Any]) -> Iterator[str]:
    if curve.get('group'):
        yield curve['group']
    for entry in curve.get('grid') or ():
        yield from (entry['group'], entry['choice'])


def _read(given: FigureInput, chosen: Mapping[str, Any]) -> Curve:
    label = chosen['label']
    if chosen.get('group'):
        return length_group.read(given, chosen['group'], label)
    grid = chosen['grid']
    return Method(
        label,
        tuple(float(entry['factor']) for entry in grid),
        tuple(length_group.read(given, entry['group'], label) for entry in grid),
        tuple(length_group.read(given, entry['choice'], label) for entry in grid),
    )


def _all(curve: Curve) -> Sequence[Group]:
    return [curve] if isinstance(curve, Group) else [*curve.reported, *curve.choice]


def _draw_curve(axes: mpl.Axes, curve: Curve, measure: str, look: Mapping[str, Any]) -> None:
    if isinstance(curve, Method):
        loss = curve.best(measure)
        axes.plot(
            curve.multiples, curve.single(measure).mean(axis=0), color=look['color'], **style.DASHED
        )
    else:
        loss = getattr(curve, measure).astype(np.float64)
    axes.plot(curve.multiples, loss.mean(axis=0), **look)
    length_axes.draw_band(axes, curve.multiples, loss, look['color'])


def _look(color: str, marker: str) -> dict[str, Any]:
    return {'color': color, 'marker': marker, 'markersize': 4, 'linewidth': 1.4}


def _handles(curve: Curve, look: Mapping[str, Any]) -> list[mpl.Line2D]:
    if isinstance(curve, Group):
        return [mpl.Line2D([], [], label=curve.label, **look)]
    single = f'{curve.label}: factor {curve.factor_overall:g} for all lengths'
    return [
        mpl.Line2D([], [], label=f'{curve.label}: factor of the lowest window mean', **look),
        mpl.Line2D([], [], label=single, color=look['color'], **style.DASHED),
    ]


def _choice(methods: Sequence[Method], windows: str) -> str:
    factors = '; '.join(
        f'{m.label}: {_listed(m.factors_per_length)} at n / L = {_listed(m.multiples)} and '
        f'{m.factor_overall:g} for all, of {_listed(m.factors)}'
        for m in methods
    )
    return (
        'Solid: at each length the factor with the lowest mean loss over the window (mean over '
        'seeds); dashed: the one factor with the lowest mean of it over all lengths above L. '
        f'Both are chosen on {windows}; no weight is changed. Factors: {factors}.'
    )


def _listed(values: Sequence[float] | np.ndarray) -> str:
    return ', '.join(f'{value:g}' for value in values)
