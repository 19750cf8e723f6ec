"""Loss against the length of the sequence for every way to choose lambda (fig_dynamic)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.figures import captions, length_claims, style
from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_choice,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.length_claims import Group
from nope.records import Records

OPTIONS = {'curves', 'band'}
BANDS = ('min-max', 'std')
CURVES = (
    {'group': 'base', 'label': 'base'},
    {'group': 'uniform', 'label': 'best uniform scale for each n'},
    {'group': 'headscale_4x', 'label': 'HeadScale searched at 4 L', 'tuned': 4},
    {'group': 'headscale_8x', 'label': 'HeadScale searched at 8 L', 'tuned': 8},
    {'group': 'log_length', 'label': 'log-length searched up to 4 L', 'tuned': 4},
)
MARKERS = 'osD^vP*'


@dataclasses.dataclass(frozen=True)
class _Panel:
    measure: str
    title: str


PANELS = (
    _Panel('loss_window', 'mean over the whole window'),
    _Panel('loss_tail', 'mean over the last L/2 positions'),
)


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names, one record a seed below it -> evaluation. ValueError for options
    that figure `name` of this kind does not have."""
    check_options(name, options, OPTIONS)
    check_choice(name, 'band', options.get('band', 'min-max'), BANDS)
    chosen = options.get('curves', CURVES)
    if not 1 <= len(chosen) <= len(style.COLORS):
        raise ValueError(
            f'figure {name!r}: curves must be 1 to {len(style.COLORS)}, got {len(chosen)}'
        )
    for curve in chosen:
        check_options(name, curve, ('group', 'label', 'tuned'), ('group',), 'curves')
    return {f'{c["group"]}/': 'lengths' for c in chosen}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, tuned}] with tuned the length of the search in multiples
    of L (default: CURVES); band, 'min-max' (default) or 'std', drawn for two seeds or more."""
    check_records(given, required(given.name, given.options))
    groups = _groups(given)
    band = given.options.get('band', 'min-max')
    names = [name for g in groups for name in g.names]
    token = captions.token_name(given.records[names[0]])
    train_length = shared_attribute(given, names, 'train_length')
    figure = style.new_figure(10.0, 4.6)
    axes = figure.subplots(1, len(PANELS))
    for panel, ax in zip(PANELS, axes, strict=True):
        _draw_panel(panel, ax, groups, band)
        ax.set_ylabel(f'loss (nats per {token})')
    seeds = len(groups[0].seeds)
    handles: list[Any] = [
        Line2D([], [], color=style.COLORS[i], marker=MARKERS[i], markersize=4, label=g.label)
        for i, g in enumerate(groups)
    ]
    spread = 'smallest to largest' if band == 'min-max' else 'one standard deviation to each side'
    if seeds > 1:
        handles.append(Patch(color=style.GREY, alpha=0.2, label=f'{spread}, {seeds} seeds'))
    figure.legend(handles=handles, loc='outside lower center', ncols=3)
    labelled = {g.label: [given.records[name] for name in g.names] for g in groups}
    caption = (
        'Loss against the length n of the sequence, in multiples of the training length '
        f'L = {train_length:,}. Left: mean over the window. Right: mean over its last L/2 '
        f'positions. Windows of all lengths end at the same tokens. Mean over {_count(seeds)}'
        + (f'; shaded: {spread} of the seeds' if seeds > 1 else '')
        + f'. Nothing is smoothed. {captions.sources(labelled)}'
    )
    return FigureOutput(
        given.name,
        figure,
        [row for g in groups for row in _rows(g, given.records)],
        caption,
        length_claims.from_groups(groups),
        runs_of(given, names),
    )


def _count(seeds: int) -> str:
    return 'one seed' if seeds == 1 else f'{seeds} seeds'


def _groups(given: FigureInput) -> list[Group]:
    chosen = given.options.get('curves', CURVES)
    groups = [_read(given, c) for c in chosen]
    first = groups[0]
    for g in groups[1:]:
        if g.seeds != first.seeds:
            raise ValueError(
                f'figure {given.name!r}: {g.name!r} has the seeds {list(g.seeds)}, '
                f'{first.name!r} has {list(first.seeds)}'
            )
        if not np.array_equal(g.multiples, first.multiples):
            raise ValueError(
                f'figure {given.name!r}: {g.name!r} was measured at other lengths '
                f'({g.multiples.tolist()} L) than {first.name!r} ({first.multiples.tolist()} L)'
            )
    return groups


def _read(given: FigureInput, chosen: Mapping[str, Any]) -> Group:
    prefix = f'{chosen["group"]}/'
    names = sorted(k for k in given.records if k.startswith(prefix))
    records = [given.records[n] for n in names]
    lengths = {tuple(r.along('length', len(r['loss_window'])).tolist()) for r in records}
    if len(lengths) != 1:
        raise ValueError(
            f'figure {given.name!r}: the seeds of {chosen["group"]!r} were measured at different '
            f'lengths: {sorted(lengths)}'
        )
    return Group(
        name=chosen['group'],
        label=chosen.get('label', chosen['group']),
        tuned=chosen.get('tuned'),
        names=tuple(names),
        seeds=tuple(n.removeprefix(prefix) for n in names),
        multiples=np.array(lengths.pop()) / records[0].attributes['train_length'],
        window=_stacked(records, 'loss_window'),
        tail=_stacked(records, 'loss_tail'),
    )


def _stacked(records: Sequence[Records], measure: str) -> np.ndarray:
    return np.stack([r[measure] for r in records])


def _draw_panel(panel: _Panel, axes: Axes, groups: Sequence[Group], band: str) -> None:
    for index, group in enumerate(groups):
        color = style.COLORS[index]
        loss = (group.window if panel.measure == 'loss_window' else group.tail).astype(np.float64)
        mean = loss.mean(axis=0)
        axes.plot(
            group.multiples, mean, color=color, marker=MARKERS[index], markersize=4, linewidth=1.4
        )
        if len(loss) > 1:
            low, high = loss.min(axis=0), loss.max(axis=0)
            if band == 'std':
                low, high = mean - loss.std(axis=0, ddof=1), mean + loss.std(axis=0, ddof=1)
            axes.fill_between(group.multiples, low, high, color=color, alpha=0.15, linewidth=0)
    multiples = groups[0].multiples
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(FixedLocator(multiples.tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f'{x:g}'))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel('length of the sequence n / L')
    axes.set_title(panel.title)


def _rows(group: Group, records: Mapping[str, Records]) -> list[dict[str, Any]]:
    return [
        {
            'record': name,
            'group': group.name,
            'label': group.label,
            'seed': seed,
            'length': int(length),
            'length_over_L': float(group.multiples[i]),
            'loss_window_nats': float(records[name]['loss_window'][i]),
            'loss_tail_nats': float(records[name]['loss_tail'][i]),
            'scale_mean': float(records[name]['scale_mean'][i]),
        }
        for name, seed in zip(group.names, group.seeds, strict=True)
        for i, length in enumerate(records[name].along('length', len(group.multiples)))
    ]
