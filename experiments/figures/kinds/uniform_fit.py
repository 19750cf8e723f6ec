"""Best uniform multiplier by position and its one-parameter fit (the paper's Figure 7)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule
from experiments.figures.claims.headline import Number, number
from experiments.figures.claims.intervals import Interval
from experiments.figures.claims.verdict import ABOVE, RULE, Bound, every
from experiments.figures.given import FigureInput, Known, Measures, check_options
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves, position_curve, positions_known
from experiments.figures.roles import Undecided
from nope.records import Records

FORM, SLOPE, BUDGET = (CLAIMS[k].thresholds for k in ('fit_form', 'fit_slope', 'fit_budget'))
LARGE = CLAIMS['uniform_hurts'].numbers['large']  # the paper's largest multiplier


@dataclasses.dataclass(frozen=True)
class FitPanel:
    """A grid of uniform multipliers and the fit to the best of them by position.

    positions [T]; loss [multipliers, T], unsmoothed, nats; a, r2: of 1 + a ln(i / L), r2 None where
    the best multiplier does not vary.
    """

    record: str
    title: str
    facts: Mapping[str, Any]
    train_length: int
    positions: np.ndarray
    multipliers: np.ndarray
    loss: np.ndarray
    best_loss: np.ndarray
    best_multiplier: np.ndarray
    a: float
    r2: float | None

    @property
    def seeds(self) -> int:
        """Seeds that all numbers are means over: of several, `r2` is not that of the mean curve."""
        seed = self.facts['seed']
        return len(seed) if isinstance(seed, tuple) else 1

    def fit(self, positions: np.ndarray) -> np.ndarray:
        return 1 + self.a * np.log(positions / self.train_length)

    @property
    def large(self) -> int:
        """Index of the multiplier nearest to the paper's largest."""
        return int(np.abs(self.multipliers - LARGE).argmin())

    @property
    def base_loss(self) -> np.ndarray | None:
        """Loss [T] of the unscaled model, where the grid holds it."""
        found = np.flatnonzero(np.isclose(self.multipliers, 1))
        return self.loss[found[0]] if found.size else None


Fits = Sequence[FitPanel]


def _form(panels: Fits) -> Measured:
    measured = {}
    for p in panels:
        multiples = [m for m in (1, 2, 4, 8) if m * p.train_length <= p.positions[-1]]
        measured[p.title] = {
            'a': p.a,
            'r2': p.r2,
            'fit': {f'{m} L': 1 + p.a * math.log(m) for m in multiples},
            'best_multiplier': {
                f'{m} L': p.best_multiplier[m * p.train_length - 1] for m in multiples
            },
            'yarn_formula': {f'{m} L': (1 + 0.1 * math.log(m)) ** 2 for m in multiples},
            'best_multiplier_whole_window': p.facts['best_multiplier_window'],
        }
    numbers = [number(_of('R^2', p), p.r2, ends=(-math.inf, 1)) for p in panels]
    holds = all(p.a > 0 and _explains(p, FORM['r2']) for p in panels)
    return measured, holds, tuple(numbers)


def _slope(panels: Fits) -> Measured:
    low, high, least = (SLOPE[k] for k in ('low', 'high', 'r2'))
    holds = every(low <= p.a <= high if _explains(p, least) else None for p in panels)
    numbers = (_slope_of(p, (low, high) if _explains(p, least) else ()) for p in panels)
    return {p.title: p.a for p in panels}, holds, tuple(numbers)


def _budget(panels: Fits) -> Measured:
    # Of an imported model it is not known.
    known = [p for p in panels if p.facts['train_tokens'] is not None]
    ordered = sorted(known, key=lambda p: p.facts['train_tokens'])
    if len({p.facts['train_tokens'] for p in ordered}) < 2:
        raise Undecided('the panels are not of two known amounts of training')
    measured = {
        p.title: {'train_tokens': p.facts['train_tokens'], 'a': p.a, 'r2': p.r2} for p in ordered
    }
    fewest, most = ordered[0], ordered[-1]
    holds = None
    if _explains(fewest, BUDGET['r2']) and _explains(most, BUDGET['r2']):
        holds = Bound(ABOVE, 0, BUDGET['a']).holds(Interval.of(np.array([most.a - fewest.a])))
    return measured, holds, (_slope_of(fewest), _slope_of(most))


def _uniform_hurts(panels: Fits) -> dict[str, float]:
    """The grid at positions inside L, for the multiplier nearest to the paper's largest."""
    found: dict[str, float] = {}
    for p in panels:
        if p.base_loss is None or p.multipliers.max() <= 1:
            continue
        change = (p.loss - p.base_loss)[p.large, p.positions <= p.train_length].mean()
        found[_of(f'multiplier {p.multipliers[p.large]:g} - none over (0, L]', p)] = change
    return found


def _not_flat(panels: Fits) -> dict[str, float]:
    """Of losses that are the least of the grid at each position."""
    rises: dict[str, float] = {}
    for p in panels:
        length, end = p.train_length, int(p.positions[-1])
        if end < 1.5 * length:
            raise Undecided(f'{p.record!r} was measured up to {end / length:g} L, not to 1.5 L')
        ends = [
            curves.mean_between(p.best_loss, p.positions, high - length / 2, high)
            for high in (length, end)
        ]
        rises[_of(f'rise to {end / length:g} L', p)] = ends[1] - ends[0]
    return rises


def _explains(panel: FitPanel, least: float) -> bool:
    """Whether the R^2 of its fit is at least this."""
    return panel.r2 is not None and panel.r2 >= least


def _slope_of(panel: FitPanel, limits: tuple[float, ...] = ()) -> Number:
    return number(_of('a', panel), panel.a, limits=limits)


def _of(what: str, panel: FitPanel) -> str:
    return f'{what} ({panel.title})' if panel.title else what


RULES: tuple[Rule[Fits], ...] = (
    Rule(
        'fit_form',
        f'In every panel a is positive and R^2 at least {FORM["r2"]}. The multiplier of the fit, '
        'the best one at a single position, the one of the formula (1 + 0.1 ln s)^2 and the one '
        'for the mean of the whole window answer different questions.',
        _form,
    ),
    Rule(
        'fit_slope',
        f'In every panel a lies between {SLOPE["low"]} and {SLOPE["high"]}; a fit with an R^2 '
        f'below {SLOPE["r2"]} decides nothing, and {RULE}.',
        _slope,
    ),
    Rule(
        'fit_budget',
        'a is larger in the panel with the most training tokens than in the one with the fewest. A '
        f'difference of at most {BUDGET["a"]} decides nothing, nor do fits with an R^2 below '
        f'{BUDGET["r2"]}.',
        _budget,
    ),
    Rule(
        'uniform_hurts',
        "Mean loss over (0, L] with the multiplier of the grid nearest to the paper's largest "
        f'({LARGE}) less that without one, in every panel',
        Every(_uniform_hurts, Bound(ABOVE, 'nats'), '', each=True, alone=True),
    ),
    Rule(
        'uniform_not_flat',
        'Loss under the best multiplier of each position, over the last L/2 positions less that '
        'over (L/2, L], in every panel. At each position the least of the losses of a grid is '
        'chosen by its own noise, which lowers both',
        Every(_not_flat, Bound(ABOVE, 'nats', 'margin'), '', each=True, alone=True),
    ),
)


@kind('uniform_fit')
class UniformFitFigure(Figure[Fits]):
    """Options: panels, [{record, title}]."""

    OPTIONS = NEEDED = ('panels',)
    MEASURES: ClassVar[Measures] = {
        'multiplier_grid': {
            'loss': ('multiplier', 'position'),
            'best_multiplier': ('position',),
            'best_loss': ('position',),
        }
    }
    RULES = RULES
    MEANS = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for panel in options['panels']:
            check_options(name, panel, ('record', 'title'), ('record',), 'panels')
        return {panel['record']: 'multiplier_grid' for panel in options['panels']}

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.beyond_l(name, known)

    def read(self, given: FigureInput) -> Fits:
        chosen = given.options['panels']
        return [_read(given, p['record'], p.get('title', p['record'])) for p in chosen]

    def picture(self, given: FigureInput, panels: Fits) -> mpl.Figure:
        figure = style.new_figure(5.6 * len(panels) + (1 if len(panels) == 1 else 0), 4.6)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        twins = [ax.twinx() for ax in axes]
        token = captions.token_name(given.records[panels[0].record])
        for panel, ax, twin in zip(panels, axes, twins, strict=True):
            _draw_panel(panel, ax, twin, token)
        # One range of multipliers for all panels, so that slopes can be compared by eye.
        values = [v for p in panels for v in (p.best_multiplier, p.fit(p.positions[-1:]))]
        low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
        margin = 0.05 * max(high - low, 0.2)
        for twin in twins:
            twin.set_ylim(low - margin, high + margin)
        return figure

    def rows(self, given: FigureInput, panels: Fits) -> Iterator[dict[str, Any]]:
        for panel in panels:
            base = panel.base_loss
            smoothed = curves.smooth(panel.best_loss, curves.half_width(panel.train_length))
            fit = np.where(
                panel.positions >= panel.train_length, panel.fit(panel.positions), np.nan
            )
            for i, position in enumerate(panel.positions):
                yield {
                    'record': panel.record,
                    'panel': panel.title,
                    'position': int(position),
                    'best_loss_nats': float(panel.best_loss[i]),
                    'best_loss_smoothed_nats': float(smoothed[i]),
                    'base_loss_nats': None if base is None else float(base[i]),
                    'best_multiplier': float(panel.best_multiplier[i]),
                    'large_multiplier': float(panel.multipliers[panel.large]),
                    'large_multiplier_loss_nats': float(panel.loss[panel.large, i]),
                    'fit': None if np.isnan(fit[i]) else float(fit[i]),
                }

    def caption(self, given: FigureInput, panels: Fits) -> str:
        halves = sorted({curves.half_width(p.train_length) for p in panels})
        smoothing = ' '.join(f'{captions.smoothing(half)}.' for half in halves)
        values = panels[0].multipliers
        grid = f'{values.min():g} alone'
        if len(values) > 1:
            step = np.median(np.diff(np.sort(values)))
            grid = f'{values.min():g} to {values.max():g}, step {step:.3g}'
        choice = f'chosen on unsmoothed losses, so a staircase in steps of the grid, {grid}'
        if panels[0].seeds > 1:  # means over seeds are none of the grid's
            choice = f'chosen for each seed on unsmoothed losses, of a grid of {grid}'
        return (
            'Lowest log-perplexity over a grid of uniform multipliers at each position (left axis) '
            f'and the multiplier that reaches it (right axis; {choice}), with the least-squares '
            f'fit 1 + a ln(i/L) on positions from L on. {smoothing} Dotted: the training length L. '
            f'{captions.sources({p.title: [given.records[p.record]] for p in panels})}'
        )


def _read(given: FigureInput, record: str, title: str) -> FitPanel:
    records: Records = given.records[record]
    facts = records.attributes
    positions = position_curve.positions_of(records)
    train_length = int(facts['train_length'])
    if facts.get('fit_a') is None:
        raise ValueError(
            f'figure {given.name!r}, run {record!r}: there is no fit (fit_a is None); the windows '
            f'must reach beyond the training length {train_length}, they end at {positions[-1]}'
        )
    return FitPanel(
        record,
        title,
        facts,
        train_length,
        positions,
        records.along('multiplier', records['loss'].shape[0]).astype(np.float64),
        records['loss'].astype(np.float64),
        records['best_loss'].astype(np.float64),
        records['best_multiplier'].astype(np.float64),
        float(facts['fit_a']),
        None if facts['fit_r2'] is None else float(facts['fit_r2']),
    )


def _draw_panel(panel: FitPanel, axes: mpl.Axes, twin: mpl.Axes, token: str) -> None:
    half = curves.half_width(panel.train_length)
    best = curves.smooth(panel.best_loss, half)
    twin.plot(panel.positions, panel.best_multiplier, color=style.BLUE, linewidth=1.0, alpha=0.8)
    beyond = panel.positions[panel.positions >= panel.train_length]
    twin.plot(beyond, panel.fit(beyond), color=style.BLACK, linewidth=1.5)
    axes.plot(panel.positions, best, color=style.RED)
    shown = [best]
    handles = [mpl.Line2D([], [], color=style.RED, label='best log-perplexity (left)')]
    if panel.base_loss is not None:
        base = curves.smooth(panel.base_loss, half)
        axes.plot(panel.positions, base, color=style.RED, **style.DASHED)
        shown.append(base)
        handles.append(
            mpl.Line2D([], [], color=style.RED, label='at multiplier 1 (left)', **style.DASHED)
        )
    # The first few positions have seen next to nothing: their loss would set the scale.
    shown = [s[panel.train_length // 16 :] for s in shown]
    low, high = min(s.min() for s in shown), max(s.max() for s in shown)
    axes.set_ylim(low - 0.05 * (high - low + 0.1), high + 0.05 * (high - low + 0.1))
    style.position_axis(axes, len(panel.positions), panel.train_length)
    axes.set_xlabel(f'position i ({token}s)')
    axes.set_ylabel(f'log-perplexity (nats per {token})', color=style.RED)
    axes.tick_params(axis='y', colors=style.RED)
    axes.set_title(panel.title)
    twin.grid(False)
    twin.spines['right'].set_visible(True)
    twin.tick_params(axis='y', colors=style.BLUE)
    twin.set_ylabel('best multiplier of 1/√H', color=style.BLUE)
    handles.append(mpl.Line2D([], [], color=style.BLUE, label='best multiplier (right)'))
    mean = f', mean of {panel.seeds} seeds' if panel.seeds > 1 else ''
    r2 = 'n/a' if panel.r2 is None else f'{panel.r2:.3f}'
    label = f'1 + a ln(i/L){mean}: a = {panel.a:.3f}, R² = {r2}'
    fit = mpl.Line2D([], [], color=style.BLACK, label=label)
    marks = [fit, style.training_length(axes, panel.train_length)]
    style.legend_below(axes, handles, marks)
