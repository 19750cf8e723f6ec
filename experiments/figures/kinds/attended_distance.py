"""Histograms of the normalised distance of the most attended key, by position encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.figures.base import (
    FigureInput,
    FigureOutput,
    check_records,
    names_below,
    runs_of,
    shared_attribute,
)
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.look import mpl, style
from experiments.figures.read.encoding_tasks import curves

MEASURES = {
    'attended_distance': {
        'share': ('layer', 'head', 'bin'),
        'distance': ('layer', 'head'),
    }
}
COLUMNS = 3  # panels side by side


class Group(NamedTuple):
    """Label of a curve, and names of its records, one a seed."""

    label: str
    names: Sequence[str]


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Prefix of record names -> evaluation (`curves.required`). ValueError for a label that stands
    twice."""
    needed = curves.required(name, options, 'attended_distance')
    labels = [curve['label'] for curve in options['curves']]
    if len(set(labels)) < len(labels):
        raise ValueError(f'figure {name!r}: the labels {labels}; accepted: none twice')
    return needed


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: curves, [{group, label, paper}], each the name of records '<group>/<seed>' of one
    encoding, all of one task. paper: the second paper's name of the encoding. It decides no
    claim. ValueError for records of several tasks."""
    check_records(given, required(given.name, given.options), MEASURES)
    found = {c['label']: names_below(given, f'{c["group"]}/') for c in given.options['curves']}
    names = [name for each in found.values() for name in each]
    task = shared_attribute(given, names, 'task')
    return FigureOutput(
        given.name,
        _picture(given, found),
        [row for label, each in found.items() for row in _rows(given, label, each)],
        _caption(given, found, task),
        [],
        runs_of(given, names),
        _markdown(given, found),
    )


def _shares(given: FigureInput, names: Sequence[str]) -> np.ndarray:
    """[S, bin] means over layers and heads."""
    return np.stack([given.records[name]['share'].mean(axis=(0, 1)) for name in names])


def _starts(given: FigureInput, name: str) -> np.ndarray:
    """[bin] where every bin begins."""
    shares = given.records[name]['share']
    return given.records[name].along('bin', shares.ndim - 1)


def _picture(given: FigureInput, found: Mapping[str, Sequence[str]]) -> mpl.Figure:
    rows = -(-len(found) // COLUMNS)
    figure = style.new_figure(11.0, 0.4 + 2.6 * rows)
    grid = figure.subplots(rows, COLUMNS, squeeze=False, sharey=True)
    colors = style.colors_of(found)
    for e, (label, names) in enumerate(found.items()):
        axes = grid[e // COLUMNS, e % COLUMNS]
        shares, starts = _shares(given, names), _starts(given, names[0])
        width = 1 / len(starts)
        axes.bar(starts + width / 2, shares.mean(axis=0), width, color=colors[label])
        if len(names) > 1:
            for seed in shares:
                axes.plot(starts + width / 2, seed, **_SEED)
        axes.set_xlim(0, 1)
        axes.set_title(label)
        axes.set_xlabel('distance of the most attended key / context')
        if e % COLUMNS == 0:
            axes.set_ylabel('share of queries')
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    return figure


_SEED: dict[str, Any] = {
    'linestyle': 'none',
    'marker': 'o',
    'markersize': 2.5,
    'markerfacecolor': 'white',
    'markeredgecolor': style.BLACK,
    'markeredgewidth': 0.5,
}


def _rows(given: FigureInput, label: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """One a record, layer, head and bin; layers and heads count from 1."""
    return [
        {
            'label': label,
            'seed': given.records[name].attributes['seed'],
            'layer': layer + 1,
            'head': head + 1,
            'from': float(start),
            'share': float(given.records[name]['share'][layer, head, b]),
            'mean_distance': float(given.records[name]['distance'][layer, head]),
            'record': name,
        }
        for name in names
        for layer, head in np.ndindex(given.records[name]['distance'].shape)
        for b, start in enumerate(_starts(given, name))
    ]


def _markdown(given: FigureInput, found: Mapping[str, Sequence[str]]) -> str:
    """Mean distances, and shares of queries in the nearest and the farthest fifth."""
    lines = [
        '| | mean distance | nearest fifth | farthest fifth |\n',
        '| --- | --- | --- | --- |\n',
    ]
    for label, names in found.items():
        mean = np.mean([given.records[name]['distance'].mean() for name in names])
        shares, starts = _shares(given, names).mean(axis=0), _starts(given, names[0])
        near, far = shares[starts < 0.2 - 1e-9].sum(), shares[starts > 0.8 - 1e-9].sum()
        lines.append(f'| {label} | {mean:.3f} | {near:.3f} | {far:.3f} |\n')
    return ''.join(lines)


def _caption(given: FigureInput, found: Mapping[str, Sequence[str]], task: str) -> str:
    count = len(next(iter(found.values())))
    seeds = 'one seed' if count == 1 else f'means of {count} seeds (dots: each)'
    models = task_captions.models(given, {task: [Group(*pair) for pair in found.items()]})
    return (
        'How far back the key with most attention is, as a share of what the query sees: (q - k) / '
        f'(q + 1) (arXiv 2305.19466, Figure 7), over all heads and tokens of targets of {task}; '
        f'{seeds}. {models}'
    )
