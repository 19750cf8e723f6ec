"""Attention distance of every encoding from NoPE by length: mean over layers, and each layer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import kind
from experiments.figures.claims.decide import Every, Rule
from experiments.figures.claims.verdict import ABOVE, BELOW, Bound
from experiments.figures.given import FigureInput, Measures
from experiments.figures.kinds.encoding_tasks import accuracy_axes
from experiments.figures.kinds.encoding_tasks import captions as task_captions
from experiments.figures.kinds.encoding_tasks.figure import EncodingFigure
from experiments.figures.look import captions, mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read.by_seed import BySeed
from experiments.figures.read.encoding_tasks import curves
from experiments.figures.roles import Undecided

NEAR, FAR = ('T5', 'ALiBi'), ('RoPE', 'APE')
PAIRED = 3  # seeds from which pairs of a seed and the next one are different pairs

TEXT = 'text'
COLUMNS = 5  # panels side by side
LOWEST = 1e-5  # nats, of the axis
# Of the paper's Figure 4, read off it: from short to long examples, averaged over layers.
PAPER = {
    'NoPE': (0.1, 0.3),
    'T5': (0.1, 0.3),
    'ALiBi': (0.15, 0.73),
    'APE': (0.2, 0.93),
    'RoPE': (0.32, 1.3),
}


@dataclasses.dataclass(frozen=True)
class Distances(curves.Curve):
    """Distances between the patterns of an encoding's model and of NoPE's, of one kind of input.

    - read: the task, or 'text'. paper: 'NoPE' is another seed of NoPE.
    - distance: [S, n, L] nats. released: the same by the paper's code, or None.
    - nearest: mean over the heads of both models of the distance to the nearest head of the other.
    """

    read: str
    distance: np.ndarray
    nearest: np.ndarray
    released: np.ndarray | None

    @property
    def mean(self) -> np.ndarray:
        """[S], over lengths and layers."""
        return self.distance.mean(axis=(1, 2))

    def side(self, values: np.ndarray, *, beyond: bool) -> np.ndarray:
        """[S, L] means of [S, n, L] over the lengths of training, or over those beyond them; NaN
        where there are none."""
        chosen = (self.lengths > self.longest) == beyond
        if not chosen.any():
            return np.full((len(values), values.shape[-1]), np.nan)
        return values[:, chosen].mean(axis=1)


Found = Mapping[str, Sequence[Distances]]  # by what is read


def _by_seed(found: Found, paper: str) -> np.ndarray:
    """[S] means over inputs, lengths and layers. Undecided where there is no such encoding."""
    means = [d.mean for some in found.values() for d in some if d.paper == paper]
    if not means:
        raise Undecided(f'no curve is of the encoding {paper!r}')
    return np.mean(means, axis=0)


def _ratio(found: Found, paper: str, over: str) -> np.ndarray:
    """Distance of one encoding over that of another, of every seed. Undecided where there is no
    such encoding, or no distance to divide by."""
    above, below = _by_seed(found, paper), _by_seed(found, over)
    if not np.all(below > 0):
        raise Undecided(f'{over} is at a distance of 0')
    return above / below


def _nearest(found: Found) -> list[tuple[str, str]]:
    shown = {d.paper for some in found.values() for d in some}
    others = [name for name in ('ALiBi', *FAR) if name in shown]
    _by_seed(found, 'T5')
    if len(others) < 2:
        raise Undecided('fewer than two of ALiBi, RoPE and APE were measured')
    return [(name, 'T5') for name in others]


def _farthest(_: Found) -> list[tuple[str, str]]:
    return [(far, near) for far in FAR for near in NEAR]


def _as_another_seed(found: Found) -> dict[str, np.ndarray]:
    ratio = _ratio(found, 'T5', 'NoPE')
    if len(ratio) < PAIRED:
        raise Undecided(f'fewer than {PAIRED} seeds: two have one distance between them')
    return {"T5 / another seed's NoPE": ratio}


def _ratios(pairs: Callable[[Found], list[tuple[str, str]]]) -> Every[Found]:
    """Distances of the first encodings over those of the second."""
    return Every(
        lambda found: {f'{far} / {near}': _ratio(found, far, near) for far, near in pairs(found)},
        Bound(ABOVE, 1, 'ratio'),
        'least ratio of distances',
        '',
        several=True,
    )


DISTANCES = (
    'Distances from NoPE, of each layer the least over pairs of heads, averaged over layers, '
    'lengths and what the figure reads: '
)

RULES: tuple[Rule[Found], ...] = (
    Rule(
        'nope_attends_like_t5',
        f"{DISTANCES}that of each of ALiBi, RoPE and APE that is shown, two at least, over T5's",
        _ratios(_nearest),
        ('T5', 'ALiBi', *FAR),
    ),
    Rule(
        'nope_attends_unlike_rope',
        f'{DISTANCES}those of RoPE and APE over those of T5 and ALiBi',
        _ratios(_farthest),
        (*NEAR, *FAR),
    ),
    Rule(
        't5_is_as_near_as_another_seed',
        f"{DISTANCES}T5's over that of NoPE trained with the next of at least {PAIRED} seeds; "
        'pairs share models, which the interval does not count',
        Every(_as_another_seed, Bound(BELOW, 'ratio'), 'distance', '', several=True),
        ('T5', 'NoPE'),
    ),
)


@kind('attention_distance')
class AttentionDistanceFigure(EncodingFigure[Found]):
    """Options as of `EncodingFigure`: distances from NoPE on one input, a task or text. paper:
    'NoPE' for another seed of NoPE."""

    EVALUATION = 'attention_distance'
    MEASURES: ClassVar[Measures] = {
        'attention_distance': {
            'distance': ('length', 'layer'),
            'pairs': ('length', 'layer', 'head', 'other'),
            'examples': ('length',),
        }
    }
    RULES = RULES

    def read(self, given: FigureInput) -> Found:
        every = [_read(given, curve) for curve in given.options['curves']]
        return _by_input(given, every)

    def picture(self, given: FigureInput, found: Found) -> mpl.Figure:
        panels = [
            (what, layer)
            for what, some in found.items()
            for layer in (None, *range(some[0].distance.shape[-1]))
        ]
        rows = math.ceil(len(panels) / COLUMNS)
        figure = style.new_figure(11.0, 0.6 + 2.5 * rows)
        grid = figure.subplots(rows, COLUMNS, squeeze=False)
        ends = _ends([d for some in found.values() for d in some])
        for (what, layer), axes in zip(panels, grid.flat, strict=False):
            _panel(axes, found[what], layer, ends)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_ylabel('distance from NoPE (nats)')
        labels = [d.label for d in next(iter(found.values()))]
        handles = [
            mpl.Line2D([], [], color=color, label=label)
            for label, color in style.colors_of(labels).items()
        ]
        figure.legend(handles=handles, loc='outside lower center', ncols=len(handles))
        return figure

    def rows(self, given: FigureInput, found: Found) -> Iterator[dict[str, Any]]:
        """One a record, length and layer; layers count from 1."""
        for d in (d for some in found.values() for d in some):
            for s, n, layer in np.ndindex(d.distance.shape):
                yield {
                    'read': d.read,
                    'label': d.label,
                    'seed': d.seeds[s],
                    'length': int(d.lengths[n]),
                    'longest': d.longest,
                    'layer': layer + 1,
                    'distance': float(d.distance[s, n, layer]),
                    'nearest': float(d.nearest[s, n, layer]),
                    'released': None if d.released is None else float(d.released[s, n, layer]),
                    'record': d.names[s],
                }

    def markdown(self, given: FigureInput, found: Found) -> str:
        """Means over seeds and lengths, up to L and beyond; then the numbers of the released code
        and of the paper's figure."""
        return '\n'.join(
            table_of([f'{what}, nats', *(d.label for d in some)], _summary(some))
            for what, some in found.items()
        )

    def caption(self, given: FigureInput, found: Found) -> str:
        every = [d for some in found.values() for d in some]
        count = len(every[0].seeds)
        seeds = (
            'One seed' if count == 1 else f'Means of {count} seeds, bands from lowest to highest'
        )
        trained = '; '.join(f'{what} to {some[0].longest}' for what, some in found.items())
        other = given.records[every[0].names[0]].attributes['other']
        return (
            "Distance between the attention of an encoding's model and of NoPE's "
            f'({other}) that read the same tokens: Jensen-Shannon divergence of the weights of a '
            'query, averaged over queries, least over all pairs of heads of a layer (arXiv '
            f'2305.19466, Figures 4 and F.7); at most ln 2 = 0.693. {seeds}; grey: lengths of '
            f'training ({trained}). {_models(given, found)}'
        )


def _read(given: FigureInput, curve: Mapping[str, Any]) -> Distances:
    """The records '<group>/<seed>' of a curve. ValueError where they differ in what is read, in
    lengths or in layers."""
    found = BySeed.of(given, curve['group'])
    found.shared(lambda r: r['distance'].shape[1], 'layers')
    has_released = all('released' in r.measures for r in found.records)
    return Distances(
        read=found.shared(lambda r: r.attributes.get('task', TEXT), 'what is read'),
        label=curve['label'],
        paper=curve.get('paper', ''),
        names=found.names,
        seeds=found.seeds,
        # L, of a task's lengths or of windows of text.
        longest=found.shared(
            lambda r: r.attributes.get('longest', r.attributes['train_length']), 'L'
        ),
        lengths=np.array(found.shared(lambda r: r.along('length', 0).tolist(), 'lengths')),
        distance=found.stacked('distance'),
        nearest=np.stack([_nearest_heads(r['pairs'].astype(np.float64)) for r in found.records]),
        released=found.stacked('released') if has_released else None,
    )


def _nearest_heads(pairs_nLNM: np.ndarray) -> np.ndarray:
    """[n, L] of the distances of all pairs of heads, averaged over examples."""
    each = [pairs_nLNM.min(axis=axis) for axis in (2, 3)]
    return np.concatenate(each, axis=-1).mean(axis=-1)


def _by_input(given: FigureInput, every: Sequence[Distances]) -> dict[str, list[Distances]]:
    """Distances by what is read, of the same layers. ValueError where they are not, and as
    `curves.grouped`."""
    found = curves.grouped(given, every, lambda one: one.read)
    for what, (first, *others) in found.items():
        for one in others:
            if one.distance.shape != first.distance.shape:
                raise ValueError(
                    f'figure {given.name!r}: {one.label!r} on {what!r} was measured in other '
                    f'layers than {first.label!r}'
                )
    return found


def _ends(every: Sequence[Distances]) -> tuple[float, float]:
    """Of the axis of distances, which is logarithmic: those of 0 are drawn at its lower end."""
    values = np.concatenate([d.distance.ravel() for d in every])
    values = values[values > 0]
    if not values.size:
        return LOWEST, math.log(2)
    return max(0.8 * float(values.min()), LOWEST), 1.25 * float(values.max())


def _panel(
    axes: mpl.Axes, some: Sequence[Distances], layer: int | None, ends: tuple[float, float]
) -> None:
    first = some[0]
    axes.axvspan(first.lengths[0], first.longest, color=accuracy_axes.TRAINED, zorder=0)
    colors = style.colors_of(d.label for d in some)
    for d in some:
        color = colors[d.label]
        lines = d.distance.mean(axis=-1) if layer is None else d.distance[..., layer]
        lines = np.maximum(lines, ends[0])
        axes.plot(d.lengths, lines.mean(axis=0), color=color, marker='o', markersize=2.5)
        if len(lines) > 1:
            low, high = lines.min(axis=0), lines.max(axis=0)
            axes.fill_between(d.lengths, low, high, color=color, alpha=0.15, linewidth=0)
    if first.read == TEXT:
        axes.set_xscale('log', base=2)
        axes.xaxis.set_major_locator(mpl.FixedLocator(first.lengths.tolist()))
        axes.xaxis.set_major_formatter(mpl.StrMethodFormatter('{x:,.0f}'))
        axes.xaxis.set_minor_locator(mpl.NullLocator())
    axes.set_xlim(first.lengths[0], first.lengths[-1])
    axes.set_yscale('log')
    style.plain_log_ticks(axes.yaxis)
    axes.set_ylim(*ends)
    axes.set_title(f'{first.read}, {"all layers" if layer is None else f"layer {layer + 1}"}')
    axes.set_xlabel('window (tokens)' if first.read == TEXT else 'length of the example')


def _number(value: float) -> str:
    return '' if np.isnan(value) else f'{value:.3f}'


def _summary(some: Sequence[Distances]) -> Iterator[list[str]]:
    """Rows of the table of one input."""
    inside, beyond = f'up to {some[0].longest}', f'beyond {some[0].longest}'
    sides = [[d.side(d.distance, beyond=x) for d in some] for x in (False, True)]
    for where, means in zip((inside, beyond), sides, strict=True):
        yield [f'{where}, all layers', *(_number(x.mean()) for x in means)]
    for layer in range(sides[1][0].shape[-1]):
        numbers = [_number(x[:, layer].mean()) for x in sides[1]]
        yield [f'{beyond}, layer {layer + 1}', *numbers]
    for where in (inside, beyond):
        nearest = [d.side(d.nearest, beyond=where == beyond).mean() for d in some]
        yield [f"{where}, every head's nearest", *map(_number, nearest)]
    released = [d.side(d.released, beyond=True) for d in some if d.released is not None]
    if len(released) == len(some):
        yield [f'{beyond}, as the released code', *(_number(x.mean()) for x in released)]
    paper = [PAPER.get(d.paper) for d in some]
    shown = ['' if p is None else f'{p[0]:g} to {p[1]:g}' for p in paper]
    yield ['Figure 4 of the paper, SCAN, from short to long', *shown]


def _models(given: FigureInput, found: Mapping[str, Sequence[Distances]]) -> str:
    """The models, and how they were trained and measured: on tasks a model for each."""
    every = [d for some in found.values() for d in some]
    if all(given.records[name].attributes.get('task') for d in every for name in d.names):
        return task_captions.models(given, found)
    labelled: dict[str, list[Any]] = {}
    for d in every:
        labelled.setdefault(d.label, []).extend(given.records[name] for name in d.names)
    return captions.sources(labelled)
