"""Attention by position: entropy, weight on the first and latest tokens, size of the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import (
    FigureInput,
    Measures,
    check_count,
    check_options,
    shared_attribute,
)
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves
from nope.records import Records

# Panels: what is drawn -> title, label of the y axis.
PANELS: Mapping[str, tuple[str, str]] = {
    'loss': ('loss', 'nats per {token}'),
    'entropy': ('attention entropy', 'bits'),
    'keys': ('effective number of keys', 'exp(entropy in nats)'),
    'local': ('weight on the latest {span} {token}s', 'share'),
    'first': ('weight on the first {token}', 'share'),
    'norm': ("size of a head's output", 'Euclidean norm'),
}
LOWEST = ('local', 'first', 'norm')
POINTS = 96
FIRST = 0.5  # of L: where the axis begins
LOCAL = (0, (4, 1.2, 1, 1.2))  # line style of local heads
# Kinds of heads -> label and line style.
KINDS = {'all': ('all heads', '-'), 'global': ('without position', '-'), 'local': ('local', LOCAL)}


# Record -> kind of heads -> panel -> values [P], and the `multiples` of L [P] they stand at.
Shapes = Mapping[str, Mapping[str, Mapping[str, np.ndarray]]]


@kind('attention_shape')
class AttentionShapeFigure(Figure[Shapes]):
    """Options: curves, [{record, label}]. Heads of two kinds in a model are drawn apart."""

    OPTIONS = NEEDED = ('curves',)
    MEASURES: ClassVar[Measures] = {
        'attention_shape': {
            'loss': ('position',),
            **dict.fromkeys(('entropy', 'first', 'local', 'norm'), ('layer', 'head', 'position')),
            'global': ('layer', 'head'),
        }
    }
    SHARED = ('train_length',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        check_count(name, 'curves', len(options['curves']), len(style.COLORS))
        for curve in options['curves']:
            check_options(name, curve, ('record', 'label'), ('record', 'label'), 'curves')
        return {curve['record']: 'attention_shape' for curve in options['curves']}

    def read(self, given: FigureInput) -> Shapes:
        shared_attribute(given, [*_labels(given)], 'span')
        return {record: _by_kind(given.records[record]) for record in _labels(given)}

    def picture(self, given: FigureInput, data: Shapes) -> mpl.Figure:
        labels, records = _labels(given), given.records[next(iter(data))]
        colors = style.colors_of(labels.values())
        figure = style.new_figure(10.0, 6.0)
        axes = dict(zip(PANELS, figure.subplots(2, 3, sharex=True).flat, strict=True))
        for record, kinds in data.items():
            for heads, (multiples, lines) in ((k, _lines(found)) for k, found in kinds.items()):
                for name, values in lines.items():
                    look = '-' if name == 'loss' else KINDS[heads][1]
                    color = colors[labels[record]]
                    axes[name].plot(multiples, values, color=color, linestyle=look, linewidth=1.2)
        ends = [
            float(found['multiples'][-1]) for kinds in data.values() for found in kinds.values()
        ]
        share = records.attributes['span'] / records.attributes['train_length']
        span, token = f'{share:g} L' if share != 1 else 'L', captions.token_name(records)
        for name, words in PANELS.items():
            title, unit = (x.format(token=token, span=span) for x in words)
            axes[name].set_title(title)
            axes[name].set_ylabel(unit)
            _set_axis(axes[name], max(1.0, *ends))
        for name in LOWEST:
            axes[name].set_xlabel('position / L')
        axes['keys'].set_yscale('log', base=2)
        style.plain_log_ticks(axes['keys'].yaxis, base=2)
        handles = [mpl.Line2D([], [], color=color, label=label) for label, color in colors.items()]
        if any('local' in kinds for kinds in data.values()):
            local: dict[str, Any] = {'color': style.GREY, 'linestyle': LOCAL}
            handles.append(mpl.Line2D([], [], label='its local heads', **local))
        handles.append(style.training_length(axes['loss'], 1))
        handles[-1].set_label(f'training length L = {int(records.attributes["train_length"]):,}')
        figure.legend(handles=handles, loc='outside lower center', ncols=2)
        return figure

    def rows(self, given: FigureInput, data: Shapes) -> Iterator[dict[str, Any]]:
        for record, kinds in data.items():
            for heads, (multiples, lines) in ((k, _lines(found)) for k, found in kinds.items()):
                for name, values in lines.items():
                    for at, value in zip(multiples, values, strict=True):
                        yield {
                            'record': record,
                            'label': _labels(given)[record],
                            'heads': 'all' if name == 'loss' else heads,
                            'measure': name,
                            'position_over_L': float(at),
                            'value': float(value),
                        }

    def caption(self, given: FigureInput, data: Shapes) -> str:
        train_length = int(given.records[next(iter(data))].attributes['train_length'])
        labelled = {label: [given.records[record]] for record, label in _labels(given).items()}
        return (
            'Attention by position, in multiples of the training length '
            f'L = {train_length:,}: means over windows, layers and heads, smoothed over L/8 '
            'positions. The effective number of keys is the mean of exp(entropy over windows). '
            'Of models with heads of two kinds solid lines are those without position, '
            f'dash-dotted lines the local ones; dotted: L. {captions.sources(labelled)}'
        )


def _labels(given: FigureInput) -> dict[str, str]:
    """Record -> label."""
    return {curve['record']: curve['label'] for curve in given.options['curves']}


def _lines(found: Mapping[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Multiples of L, and the values of each panel at them."""
    return found['multiples'], {k: v for k, v in found.items() if k != 'multiples'}


def _by_kind(found: Records) -> dict[str, dict[str, np.ndarray]]:
    """Kind of heads -> panel -> values [P], and the `multiples` of L [P] they stand at. The loss is
    that of the whole model and stands with the first kind."""
    train_length = int(found.attributes['train_length'])
    positions = found.along('position', len(found['loss']))
    half = max(1, train_length // 16)
    without_LN = found['global'] > 0
    masks = {'all': np.ones_like(without_LN)}
    if without_LN.any() and not without_LN.all():
        masks = {'global': without_LN, 'local': ~without_LN}
    kept = np.flatnonzero(positions >= FIRST * train_length)
    kept = kept[np.unique(np.geomspace(1, len(kept), POINTS).astype(int)) - 1]
    parts: dict[str, dict[str, np.ndarray]] = {}
    for heads, mask in masks.items():
        nats_HT = found['entropy'][mask].astype(np.float64)
        values = {
            'entropy': nats_HT.mean(axis=0) * curves.BITS_PER_NAT,
            'keys': np.exp(nats_HT).mean(axis=0),
            **{name: found[name][mask].mean(axis=0) for name in ('local', 'first', 'norm')},
        }
        if not parts:
            values = {'loss': found['loss'], **values}
        parts[heads] = {
            name: curves.smooth(np.asarray(line, np.float64), half)[kept]
            for name, line in values.items()
        } | {'multiples': positions[kept] / train_length}
    return parts


def _set_axis(axes: mpl.Axes, longest: float) -> None:
    axes.set_xscale('log', base=2)
    axes.set_xlim(FIRST, longest)
    doublings = int(np.log2(longest / FIRST))
    axes.xaxis.set_major_locator(mpl.FixedLocator([FIRST * 2**k for k in range(doublings + 1)]))
    axes.xaxis.set_major_formatter(mpl.FuncFormatter(lambda x, _: f'{x:g}'))
    axes.xaxis.set_minor_locator(mpl.NullLocator())
    axes.axvline(1.0, color=style.GREY, linestyle=':', linewidth=1.0, zorder=1)
