"""Attention entropy and loss against position (the paper's Figures 1, 2 and 4)."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims import positions as claims
from experiments.figures.given import FigureInput, Known, check_count, check_options
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import position_curve, positions_known
from experiments.figures.read.position_curve import PositionCurve
from experiments.figures.roles import Roles

MAX_PANELS = 2
MARKS = 8  # of a curve


@dataclasses.dataclass(frozen=True)
class _Curve:
    record: str
    label: str
    data: PositionCurve
    color: str


@dataclasses.dataclass(frozen=True)
class _Panel:
    title: str
    curves: list[_Curve]


@kind('entropy_loss')
class EntropyLossFigure(Figure[Sequence[_Panel]]):
    """Options: panels, one or two of {title, curves: [{record, label}]}; roles of records
    (claims/positions.py)."""

    OPTIONS, NEEDED = ('panels', 'roles'), ('panels',)
    SHARED = ('train_length', 'length', 'windows', 'split')
    RULES = claims.RULES
    MEANS = RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        check_count(name, 'panels', len(options['panels']), MAX_PANELS)
        for panel in options['panels']:
            check_options(name, panel, ('title', 'curves'), ('curves',), 'panels')
            for curve in panel['curves']:
                check_options(name, curve, ('record', 'label'), ('record',), 'curves')
        records = [curve['record'] for panel in options['panels'] for curve in panel['curves']]
        roles.check(name, options, roles.parts(claims.ROLES, records))
        return dict.fromkeys(records, 'positions')

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.reaching_l(name, known)

    def read(self, given: FigureInput) -> list[_Panel]:
        chosen = given.options['panels']
        labels = [_label_of(c) for p in chosen for c in p['curves']]
        # One colour for one label in all panels.
        colors = style.colors_of(labels, most=len(style.COLORS))
        # 'multiplier 1.2' may stand in both panels; captions and claims have to tell them apart.
        ambiguous = len(set(labels)) < len(labels)
        panels = [_Panel(panel.get('title', ''), []) for panel in chosen]
        for panel, c in ((p, c) for p, x in zip(panels, chosen, strict=True) for c in x['curves']):
            record, label = c['record'], _label_of(c)
            name = f'{panel.title} {label}' if ambiguous else label
            data = position_curve.read(name, given.records[record])
            panel.curves.append(_Curve(record, label, data, colors[label]))
        names = {c.record: [c.record] for p in panels for c in p.curves}
        roles.check_length(given, claims.HEADSCALE, names)
        return panels

    def shown(self, given: FigureInput, panels: Sequence[_Panel]) -> Roles[PositionCurve]:
        drawn = {c.record: c.data for p in panels for c in p.curves}
        return Roles(given.name, given.options, drawn)

    def picture(self, given: FigureInput, panels: Sequence[_Panel]) -> mpl.Figure:
        figure = style.new_figure(6.6 if len(panels) == 1 else 11.0, 4.6)
        axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        twins = [ax.twinx() for ax in axes]
        for panel, ax, twin in zip(panels, axes, twins, strict=True):
            _draw_panel(panel, ax, twin)
        token = captions.token_name(given.records[panels[0].curves[0].record])
        _scales(axes, twins, panels, token)
        return figure

    def rows(self, given: FigureInput, panels: Sequence[_Panel]) -> Iterator[dict[str, Any]]:
        for panel in panels:
            for curve in panel.curves:
                names = {'panel': panel.title, 'record': curve.record, 'label': curve.label}
                yield from (names | row for row in position_curve.rows(curve.data))

    def caption(self, given: FigureInput, panels: Sequence[_Panel]) -> str:
        drawn = [c for p in panels for c in p.curves]
        token = captions.token_name(given.records[drawn[0].record])
        several = any(curve.data.loss_ST is not None for curve in drawn)
        bands = ' Lines: means over seeds; bands: from the lowest to the highest seed.'
        return (
            'Attention entropy (solid, left; bits, mean over all layers and heads) and '
            f'log-perplexity (dashed, right; nats per {token}) against position. '
            f'{captions.smoothing(drawn[0].data.half)}; the entropy is not smoothed. Thin dashed: '
            'the bound log2(i) of even attention. Dotted: the training length L.'
            f'{bands if several else ""} '
            f'{captions.sources({c.data.name: [given.records[c.record]] for c in drawn})}'
        )


def _label_of(chosen: Mapping[str, Any]) -> str:
    return chosen.get('label', chosen['record'])


def _draw_panel(panel: _Panel, axes: mpl.Axes, twin: mpl.Axes) -> None:
    first = panel.curves[0].data
    bound = style.bound(axes, first.positions)
    length = style.training_length(axes, first.train_length)
    count = len(panel.curves)
    for number, curve in enumerate(panel.curves):
        # Marks tell curves apart without colour; those of one position would hide each other.
        every = max(1, len(curve.data.positions) // MARKS)
        mark: dict[str, Any] = {
            'color': curve.color,
            'marker': MARKERS[number % len(MARKERS)],
            'markersize': 4,
            'markevery': (every // 2 + number * every // (count + 1), every),
        }
        axes.plot(curve.data.positions, curve.data.entropy_bits, **mark)
        twin.plot(curve.data.positions, curve.data.smoothed, **{**mark, **style.DASHED})
        for ax, ends in zip((axes, twin), curve.data.spreads() or (), strict=False):
            ax.fill_between(curve.data.positions, *ends, color=curve.color, alpha=0.15, linewidth=0)
    style.position_axis(axes, len(first.positions), first.train_length)
    # Under the left axes' curves a grid of the right ones would not match the left ticks.
    twin.grid(False)
    twin.spines['right'].set_visible(True)
    if panel.title:
        axes.set_title(panel.title)
    handles = [
        mpl.Line2D([], [], color=c.color, marker=marker, markersize=4, label=c.label)
        for c, marker in zip(panel.curves, itertools.cycle(MARKERS), strict=False)
    ]
    meaning = [
        mpl.Line2D([], [], color=style.GREY, label='entropy (left axis)'),
        mpl.Line2D([], [], color=style.GREY, label='log-perplexity (right axis)', **style.DASHED),
        bound,
        length,
        *length_axes.band_handle(1 if first.loss_ST is None else len(first.loss_ST)),
    ]
    style.legend_below(axes, handles, meaning)


def _scales(
    axes: Sequence[mpl.Axes], twins: Sequence[mpl.Axes], panels: Sequence[_Panel], token: str
) -> None:
    """Labels and limits; all panels share both scales, so that they can be compared."""
    data = [c.data for p in panels for c in p.curves]
    axes[0].set_ylim(position_curve.entropy_limits(data))
    axes[0].set_ylabel('mean attention entropy (bits)')
    for ax, twin in zip(axes, twins, strict=True):
        twin.set_ylim(position_curve.loss_limits(data))
        ax.set_xlabel(f'position ({token}s)')
    for twin in twins[:-1]:
        twin.tick_params(labelright=False)
    twins[-1].set_ylabel(f'log-perplexity (nats per {token})')
