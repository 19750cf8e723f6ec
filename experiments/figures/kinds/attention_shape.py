"""Attention by position: entropy, weight on the first and latest tokens, size of the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    Measures,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import curves
from nope.records import Records

# Attributes that all of its records share.
SHARED = ('train_length',)
OPTIONS = {'curves'}
BY_HEAD = ('layer', 'head', 'position')
MEASURES: Measures = {
    'attention_shape': {
        'loss': ('position',),
        **dict.fromkeys(('entropy', 'first', 'local', 'norm'), BY_HEAD),
        'global': ('layer', 'head'),
    }
}
# Panels: what is drawn -> title, label of the y axis.
PANELS: Mapping[str, tuple[str, str]] = {
    'loss': ('loss', 'nats per {token}'),
    'entropy': ('attention entropy', 'bits'),
    'keys': ('effective number of keys', 'exp(entropy in nats)'),
    'local': ('weight on the latest L {token}s', 'share'),
    'first': ('weight on the first {token}', 'share'),
    'norm': ("size of a head's output", 'Euclidean norm'),
}
LOWEST = ('local', 'first', 'norm')
POINTS = 96
FIRST = 0.5  # of L: where the axis begins
LOCAL = (0, (4, 1.2, 1, 1.2))  # line style of local heads
# Kinds of heads -> label and line style.
KINDS = {'all': ('all heads', '-'), 'global': ('without position', '-'), 'local': ('local', LOCAL)}


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Record name -> evaluation. ValueError for options that figure `name` of this kind does
    not have."""
    check_options(name, options, OPTIONS, ('curves',))
    if len(options['curves']) > len(style.COLORS):
        given, most = len(options['curves']), len(style.COLORS)
        raise ValueError(f'figure {name!r}: curves must be 1 to {most}, got {given}')
    for curve in options['curves']:
        check_options(name, curve, ('record', 'label'), ('record', 'label'), 'curves')
    return {curve['record']: 'attention_shape' for curve in options['curves']}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{record, label}]. Heads of two kinds in a model are drawn apart."""
    needs = required(given.name, given.options)
    check_records(given, needs, MEASURES)
    (train_length,) = (int(shared_attribute(given, list(needs), x)) for x in SHARED)
    labels = {curve['record']: curve['label'] for curve in given.options['curves']}
    token = captions.token_name(given.records[next(iter(needs))])
    rows: list[dict[str, Any]] = []
    figure = style.new_figure(10.0, 6.0)
    axes = dict(zip(PANELS, figure.subplots(2, 3, sharex=True).flat, strict=True))
    longest = 1.0
    colors = style.colors_of(labels.values())
    for record, label in labels.items():
        color = colors[label]
        found = given.records[record]
        for kind, measures in _by_kind(found, train_length).items():
            multiples = measures.pop('multiples')
            longest = max(longest, float(multiples[-1]))
            for name, values in measures.items():
                style_of = '-' if name == 'loss' else KINDS[kind][1]
                axes[name].plot(multiples, values, color=color, linestyle=style_of, linewidth=1.2)
            rows += _rows(record, label, kind, multiples, measures)
    for name, (title, unit) in PANELS.items():
        axes[name].set_title(title.format(token=token))
        axes[name].set_ylabel(unit.format(token=token))
        _set_axis(axes[name], longest)
    for name in LOWEST:
        axes[name].set_xlabel('position / L')
    axes['keys'].set_yscale('log', base=2)
    style.plain_log_ticks(axes['keys'].yaxis, base=2)
    handles = [mpl.Line2D([], [], color=color, label=label) for label, color in colors.items()]
    if any(row['heads'] == 'local' for row in rows):
        handles.append(
            mpl.Line2D([], [], color=style.GREY, linestyle=LOCAL, label='its local heads')
        )
    handles.append(style.training_length(axes['loss'], 1))
    handles[-1].set_label(f'training length L = {train_length:,}')
    figure.legend(handles=handles, loc='outside lower center', ncols=2)
    caption = (
        'Attention by position, in multiples of the training length '
        f'L = {train_length:,}: means over windows, layers and heads, smoothed over L/8 positions. '
        'The effective number of keys is the mean of exp(entropy over windows). '
        'Of models with heads of two kinds solid lines are those without position, '
        'dash-dotted lines the local ones; dotted: L. '
        f'{captions.sources({labels[r]: [given.records[r]] for r in labels})}'
    )
    return FigureOutput(given.name, figure, rows, caption, [], runs_of(given, list(needs)))


def _by_kind(found: Records, train_length: int) -> dict[str, dict[str, np.ndarray]]:
    """Kind of heads -> panel -> values [P], and the `multiples` of L [P] they stand at. The loss is
    that of the whole model and stands with the first kind."""
    positions = found.along('position', len(found['loss']))
    half = max(1, train_length // 16)
    without_LN = found['global'] > 0
    masks = {'all': np.ones_like(without_LN)}
    if without_LN.any() and not without_LN.all():
        masks = {'global': without_LN, 'local': ~without_LN}
    kept = np.flatnonzero(positions >= FIRST * train_length)
    kept = kept[np.unique(np.geomspace(1, len(kept), POINTS).astype(int)) - 1]
    parts: dict[str, dict[str, np.ndarray]] = {}
    for kind, mask in masks.items():
        nats_HT = found['entropy'][mask].astype(np.float64)
        values = {
            'entropy': nats_HT.mean(axis=0) * curves.BITS_PER_NAT,
            'keys': np.exp(nats_HT).mean(axis=0),
            **{name: found[name][mask].mean(axis=0) for name in ('local', 'first', 'norm')},
        }
        if not parts:
            values = {'loss': found['loss'], **values}
        parts[kind] = {
            name: curves.smooth(np.asarray(line, np.float64), half)[kept]
            for name, line in values.items()
        } | {'multiples': positions[kept] / train_length}
    return parts


def _rows(
    record: str,
    label: str,
    kind: str,
    multiples: np.ndarray,
    measures: Mapping[str, np.ndarray],
) -> list[dict[str, Any]]:
    return [
        {
            'record': record,
            'label': label,
            'heads': 'all' if name == 'loss' else kind,
            'measure': name,
            'position_over_L': float(at),
            'value': float(value),
        }
        for name, values in measures.items()
        for at, value in zip(multiples, values, strict=True)
    ]


def _set_axis(axes: mpl.Axes, longest: float) -> None:
    axes.set_xscale('log', base=2)
    axes.set_xlim(FIRST, longest)
    doublings = int(np.log2(longest / FIRST))
    axes.xaxis.set_major_locator(mpl.FixedLocator([FIRST * 2**k for k in range(doublings + 1)]))
    axes.xaxis.set_major_formatter(mpl.FuncFormatter(lambda x, _: f'{x:g}'))
    axes.xaxis.set_minor_locator(mpl.NullLocator())
    axes.axvline(1.0, color=style.GREY, linestyle=':', linewidth=1.0, zorder=1)
