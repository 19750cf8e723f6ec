"""Best uniform multiplier by position and its one-parameter fit (the paper's Figure 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims import fits as claims
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.given import FigureInput, Known, Measures, check_options
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves, position_curve, positions_known
from experiments.figures.read.fit_panel import FitPanel
from nope.records import Records

LARGE = CLAIMS['uniform_hurts'].numbers['large']  # the paper's largest multiplier


Fits = Sequence[FitPanel]


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
    RULES = claims.RULES
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
            large = int(np.abs(panel.multipliers - LARGE).argmin())
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
                    'large_multiplier': float(panel.multipliers[large]),
                    'large_multiplier_loss_nats': float(panel.loss[large, i]),
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
