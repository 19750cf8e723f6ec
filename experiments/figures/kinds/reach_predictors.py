"""Measures of a training at L and 2 L against how far it reaches: rank correlations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from experiments.figures.base import Figure, kind
from experiments.figures.given import (
    MEASURES,
    FigureInput,
    Known,
    Measures,
    check_count,
    check_differ,
    check_options,
)
from experiments.figures.look import captions, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.look.web import table_of
from experiments.figures.read import key_attention, key_group
from experiments.figures.read.by_seed import BySeed, check_seeds
from experiments.figures.read.key_attention import AXES, KeyAttention
from experiments.figures.read.key_group import KeyGroup

POINT_KEYS = ('label', 'attention', 'keys')
TIMES = (16.0, 32.0, 64.0)  # of L: the reach is the mean share of keys that are repeated there
FEWEST = 4  # trainings of a method
MEASURED = ('margin', 'margin_spread', 'margin_by_depth', 'values')
CHOSEN, HELD_OUT = 'chosen on', 'held out'


@dataclasses.dataclass(frozen=True)
class Look:
    """The head that finds the key, of every training of a method, S of them.

    attention: of all heads. at: multiple of L -> its index. finders: (layer, head) by training.
    measures: name -> [S, n, layer, head]. far: keys of long prompts; reach: [S], their
    mean at TIMES.
    """

    label: str
    attention: KeyAttention
    at: Mapping[float, int]
    finders: Sequence[tuple[int, int]]
    measures: Mapping[str, np.ndarray]
    far: KeyGroup
    reach: np.ndarray

    def of_finder(self, values_SnLN: np.ndarray, multiple: float) -> np.ndarray:
        """[S] of that head at so many L."""
        heads = enumerate(self.finders)
        return np.array([values_SnLN[s, self.at[multiple], i, j] for s, (i, j) in heads])

    def measure(self, name: str, multiple: float) -> np.ndarray:
        return self.of_finder(self.measures[name], multiple)

    def weight(self, multiple: float) -> np.ndarray:
        return self.of_finder(self.attention.weights['key'], multiple)


# Name, with its unit -> its values [S].
CANDIDATES: Mapping[str, Callable[[Look], np.ndarray]] = {
    'weight on the key at L': lambda look: look.weight(1),
    'margin at L (nats)': lambda look: look.measure('margin', 1),
    'spread of the margin at L (nats)': lambda look: look.measure('margin_spread', 1),
    'margin over its spread at L': lambda look: (
        look.measure('margin', 1) / look.measure('margin_spread', 1)
    ),
    'spread of the margin between depths at L (nats)': lambda look: (
        look.measure('margin_spread', 1) * np.sqrt(look.measure('margin_by_depth', 1))
    ),
    'values of the key over others at L': lambda look: look.measure('values', 1),
    'weight at 2 L less at L': lambda look: look.weight(2) - look.weight(1),
    'margin at 2 L less at L (nats)': lambda look: (
        look.measure('margin', 2) - look.measure('margin', 1)
    ),
    'margin over its spread at 2 L': lambda look: (
        look.measure('margin', 2) / look.measure('margin_spread', 2)
    ),
}


@kind('reach_predictors')
class ReachPredictorsFigure(Figure[Sequence[Look]]):
    """Options:

    - points: [{label, attention, keys}], names of records '<name>/<seed>': attention on keys at L
      and 2 L, and keys far beyond L, of the same trainings.

    Every second training chooses the candidate; the others test it. A method has four or more.
    """

    OPTIONS, NEEDED = ('points',), ('points',)
    MEASURES: ClassVar[Measures] = {
        **MEASURES,
        'key_attention': {
            **key_attention.MEASURES['key_attention'],
            **dict.fromkeys(MEASURED, AXES),
        },
    }
    SHARED = ('train_length',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        points = options['points']
        check_count(name, 'points', len(points), len(style.COLORS))
        found: dict[str, str] = {}
        for point in points:
            check_options(name, point, POINT_KEYS, POINT_KEYS, 'points')
            found |= {f'{point["attention"]}/': 'key_attention', f'{point["keys"]}/': 'passkey'}
        check_differ(name, 'labels of points', [point['label'] for point in points])
        return found

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        for point in options['points']:
            own = [record for record in known if record.startswith(f'{point["attention"]}/')]
            _check_trainings(name, point['label'], len(own))

    def read(self, given: FigureInput) -> list[Look]:
        return [_read(given, point) for point in given.options['points']]

    def picture(self, given: FigureInput, looks: Sequence[Look]) -> mpl.Figure:
        rows = -(-len(CANDIDATES) // 3)
        figure = style.new_figure(9.6, 3.1 * rows + 0.9)
        panels = figure.subplots(rows, 3, sharey=True, squeeze=False).ravel()
        colors = style.colors_of((look.label for look in looks), most=len(style.COLORS))
        for axes, (name, (chosen, held)) in zip(panels, correlations(looks).items(), strict=True):
            for look, marker in zip(looks, MARKERS, strict=False):
                x, color = CANDIDATES[name](look), colors[look.label]
                for part, face in ((halves(x)[0], color), (halves(x)[1], 'none')):
                    axes.plot(
                        *(x[part], 100 * look.reach[part]),
                        linestyle='none',
                        marker=marker,
                        color=color,
                        markerfacecolor=face,
                        markersize=5,
                    )
            axes.set_xlabel(name)
            axes.set_title(f'rank correlation {_said(chosen)}, held out {_said(held)}', fontsize=8)
            axes.set_ylim(-4, 104)
        for axes in panels[::3]:
            axes.set_ylabel(f'keys repeated, mean of {_said_times()} (%)')
        dot: dict[str, Any] = {'linestyle': 'none', 'marker': 'o', 'color': style.GREY}
        handles = [
            mpl.Line2D([], [], linestyle='none', marker=marker, color=color, label=label)
            for (label, color), marker in zip(colors.items(), MARKERS, strict=False)
        ]
        handles += [
            mpl.Line2D([], [], label='the trainings that choose', **dot),
            mpl.Line2D([], [], label='those held out', markerfacecolor='none', **dot),
        ]
        figure.legend(handles=handles, loc='outside lower center', ncols=4)
        return figure

    def rows(self, given: FigureInput, looks: Sequence[Look]) -> Iterator[dict[str, Any]]:
        """Values of every training, then rank correlations."""
        for name, measure in CANDIDATES.items():
            for look in looks:
                values = measure(look)
                chosen, _ = halves(values)
                for s, seed in enumerate(look.attention.keys.seeds):
                    layer, head = look.finders[s]
                    yield {
                        'candidate': name,
                        'label': look.label,
                        'seed': seed,
                        'part': CHOSEN if s in chosen else HELD_OUT,
                        'layer': layer,
                        'head': head,
                        'value': float(values[s]),
                        'share_of_keys': float(look.reach[s]),
                    }
        for name, found in correlations(looks).items():
            for part, value in zip((CHOSEN, HELD_OUT), found, strict=True):
                empty = dict.fromkeys(('label', 'seed', 'layer', 'head', 'share_of_keys'), '')
                value_or = '' if value is None else value
                yield (
                    {'candidate': f'rank correlation, {name}', 'part': part}
                    | empty
                    | {'value': value_or}
                )

    def markdown(self, given: FigureInput, looks: Sequence[Look]) -> str:
        found = correlations(looks)
        return table_of(
            ['rank correlation with the reach', CHOSEN, HELD_OUT],
            ([name, *map(_said, both)] for name, both in found.items()),
        )

    def caption(self, given: FigureInput, looks: Sequence[Look]) -> str:
        first = looks[0].far
        found = {k: v for k, v in correlations(looks).items() if v[0] is not None}
        best = max(found, key=lambda name: abs(found[name][0] or 0.0), default=None)
        told = (
            ''
            if best is None
            else f'The best on the trainings that choose: {best}, {_said(found[best][0])}; held '
            f'out {_said(found[best][1])}. '
        )
        records = {
            look.label: [given.records[name] for name in look.attention.keys.names]
            for look in looks
        }
        return (
            'One dot a training: what the head with the most weight on the key at L does there and '
            'at 2 L, against the share of prompts answered with exactly the key, mean of '
            f'{_said_times()} ({first.asked}, {first.prompts} prompts each; '
            f'L = {first.train_length:,}). The margin of a prompt is the largest logit on the '
            "key's first token less the largest elsewhere. Titles: rank correlation (Spearman), "
            'of ranks within each method, over every second training and over the others; methods '
            f'whose trainings are alike do not count. {told}' + captions.sources(records)
        )


def halves(values_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the trainings that choose, and of those held out."""
    every = np.arange(len(values_S))
    return every[::2], every[1::2]


def correlations(looks: Sequence[Look]) -> dict[str, tuple[float | None, float | None]]:
    """Candidate -> rank correlation with the reach, over each half of the trainings."""
    found = {}
    for name, measure in CANDIDATES.items():
        of_halves: tuple[list, list] = ([], [])
        for look in looks:
            values = measure(look)
            for pairs, half in zip(of_halves, halves(values), strict=True):
                pairs.append((values[half], look.reach[half]))
        chosen, held = map(_within, of_halves)
        found[name] = chosen, held
    return found


def _within(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float | None:
    """Correlation of ranks within each pair of values less their mean, over the pairs whose values
    differ; None where there is no such pair."""
    differ = [pair for pair in pairs if all(np.ptp(values) > 0 for values in pair)]
    if not differ:
        return None
    x, y = (
        np.concatenate([stats.rankdata(pair[k]) - (len(pair[k]) + 1) / 2 for pair in differ])
        for k in (0, 1)
    )
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def _said(value: float | None) -> str:
    return 'none' if value is None else f'{value:.2f}'


def _said_times() -> str:
    return ', '.join(f'{multiple:g}' for multiple in TIMES) + ' L'


def _check_trainings(figure: str, label: str, count: int) -> None:
    if count < FEWEST:
        raise ValueError(
            f'figure {figure!r}: {label!r} has {count} trainings; two halves of them need {FEWEST}'
        )


def _read(given: FigureInput, point: Mapping[str, Any]) -> Look:
    attention = key_attention.read(given, point['attention'], point['label'])
    keys = key_group.read(given, point['keys'], point['label'])
    check_seeds(given, [attention.keys, keys])
    at, far = {m: attention.keys.at(m) for m in (1.0, 2.0)}, [keys.at(m) for m in TIMES]
    if None in at.values() or None in far:
        raise ValueError(
            f'figure {given.name!r}: {point["attention"]!r} must be of L and 2 L, and '
            f'{point["keys"]!r} of {_said_times()}; they are of '
            f'{attention.keys.multiples.tolist()} L and {keys.multiples.tolist()} L'
        )
    found = BySeed.of(given, point['attention'])
    _check_trainings(given.name, point['label'], len(found.seeds))
    return Look(
        label=point['label'],
        attention=attention,
        at={m: index for m, index in at.items() if index is not None},
        finders=attention.finders,
        measures={name: found.stacked(name) for name in MEASURED},
        far=keys,
        reach=np.mean([keys.shares[:, i] for i in far], axis=0),
    )
