"""Whether heads keep the order of their attention entropies over a training."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, check_count, check_options
from experiments.figures.look import captions, head_lines, length_axes, mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read import head_entropies
from experiments.figures.read.by_seed import BySeed, check_seeds
from experiments.figures.read.head_entropies import BEYOND, INSIDE, TITLES, Range

MAX_MODELS = 3
# What the entropies at a step are compared with: the last step of the same training, that of a
# training from the same first weights on other data, that of another seed.
END, DATA, SEED = 'end', 'other data', 'other seed'
HEADS, LAYERS = 'all heads', 'mean of layers'
LOOKS: Mapping[str, Mapping[str, Any]] = {
    DATA: {'color': style.COLORS[1], 'linestyle': '--', 'label': 'two ends, same first weights'},
    SEED: {'color': style.GREY, 'linestyle': ':', 'label': 'two ends, another seed'},
}


class Pair(NamedTuple):
    """Spearman's rank correlations of entropies at a step of one seed with others."""

    compared: str
    step: int
    seed: str
    other: str
    heads: float
    by_layer: Sequence[float]

    @property
    def layers(self) -> float:
        return float(np.mean(self.by_layer))


@dataclasses.dataclass(frozen=True)
class Ranks:
    """A model at P steps of its training, of S seeds. bits: range -> [P, S, N_layers, H].
    again: range -> [S, N_layers, H], of the end of the training on other data; {} for none."""

    label: str
    last: BySeed
    steps: np.ndarray
    bits: Mapping[Range, np.ndarray]
    again: Mapping[Range, np.ndarray]

    def pairs(self, part: Range) -> Iterator[Pair]:
        seeds, end_SLH = self.last.seeds, self.bits[part][-1]
        last = int(self.steps[-1])
        for step, bits_SLH in zip(self.steps[:-1], self.bits[part], strict=False):
            for seed, first, second in zip(seeds, bits_SLH, end_SLH, strict=True):
                yield _pair(END, int(step), (seed, seed), first, second)
        if self.again:
            for seed, first, second in zip(seeds, end_SLH, self.again[part], strict=True):
                yield _pair(DATA, last, (seed, seed), first, second)
        for one, other in itertools.combinations(range(len(seeds)), 2):
            yield _pair(SEED, last, (seeds[one], seeds[other]), end_SLH[one], end_SLH[other])

    def mean(
        self, part: Range, compared: str, step: int | None = None, of: str = 'layers'
    ) -> float | None:
        """Mean over seeds, at one step, of the mean of layers or `of` all 'heads'; None where
        nothing was compared."""
        found = [
            getattr(pair, of)
            for pair in self.pairs(part)
            if pair.compared == compared and step in (None, pair.step)
        ]
        return float(np.mean(found)) if found else None


@kind('head_ranks')
class HeadRanksFigure(Figure[Sequence[Ranks]]):
    """Options:

    - steps: [{group, label}] of records '<group>/<seed>'. The groups of one label are those of one
      run at two or more steps of its training. Up to three labels.
    - again: the same, of the end of a training from the same first weights on other data.
    """

    OPTIONS, NEEDED = ('steps', 'again'), ('steps',)
    SHARED = ('train_length', 'length')

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        models, again = _groups(name, options, 'steps'), _groups(name, options, 'again')
        check_count(name, 'labels of steps', len(models), MAX_MODELS)
        for label, groups in models.items():
            if len(set(groups)) < 2:
                raise ValueError(
                    f'figure {name!r}: steps of {label!r} must be two or more, got {groups}'
                )
        for label, groups in again.items():
            if label not in models or len(groups) > 1:
                raise ValueError(
                    f'figure {name!r}: again must be one group of a label of steps, got '
                    f'{groups} of {label!r}'
                )
        every = (*models.values(), *again.values())
        return {f'{group}/': 'positions' for groups in every for group in groups}

    def read(self, given: FigureInput) -> Sequence[Ranks]:
        again = _groups(given.name, given.options, 'again')
        models = _groups(given.name, given.options, 'steps')
        found = [_ranks(given, label, own, again.get(label, [])) for label, own in models.items()]
        head_entropies.check_length(given, found[0].last.records[0])
        return found

    def picture(self, given: FigureInput, data: Sequence[Ranks]) -> mpl.Figure:
        bound = head_entropies.bound(data[0].last.records[0], INSIDE)
        figure = style.new_figure(3.2 * len(data) + 1.2, 7.6)
        axes = figure.subplots(3, len(data), squeeze=False, sharex='col', sharey='row')
        for ranks, (heads, *parts) in zip(data, axes.T, strict=True):
            head_lines.draw(heads, ranks.steps, ranks.bits[INSIDE][:, 0], bound)
            heads.set_title(ranks.label)
            for ax, part in zip(parts, TITLES, strict=True):
                _draw_ranks(ax, ranks, part)
            parts[-1].set_xlabel('training step')
            parts[-1].set_xscale('log')
            style.plain_log_ticks(parts[-1].xaxis)
        axes[0, 0].set_ylabel(f'entropy of each head (bits),\n{TITLES[INSIDE]}')
        for ax, title in zip(axes[1:, 0], TITLES.values(), strict=True):
            ax.set_ylabel(f'rank correlation with the end,\n{title}')
            ax.set_ylim(-1.05, 1.05)
        handles = [
            *head_lines.layer_handles(data[0].bits[INSIDE].shape[2]),
            head_lines.bound_handle(),
            mpl.Line2D([], [], color=style.BLACK, label='heads of a layer, mean of layers'),
            *length_axes.band_handle(len(data[0].last.seeds)),
        ]
        for compared, looks in LOOKS.items():
            if any(ranks.mean(INSIDE, compared) is not None for ranks in data):
                handles.append(mpl.Line2D([], [], **looks))
        figure.legend(handles=handles, loc='outside lower center', ncols=-(-len(handles) // 2))
        return figure

    def rows(self, given: FigureInput, data: Sequence[Ranks]) -> Iterator[dict[str, Any]]:
        """Entropies of heads, and rank correlations of each layer, of all heads and the mean of the
        layers."""
        for ranks, part in itertools.product(data, TITLES):
            about = {'label': ranks.label, 'above_L': part[0], 'up_to_L': part[1]}
            for (p, s, layer, head), value in np.ndenumerate(ranks.bits[part]):
                place = {'step': int(ranks.steps[p]), 'seed': ranks.last.seeds[s], 'other': ''}
                of = {'measure': 'entropy_bits', 'layer': layer, 'head': head}
                yield about | place | of | {'value': float(value)}
            for pair in ranks.pairs(part):
                place = {'step': pair.step, 'seed': pair.seed, 'other': pair.other}
                found: dict[str | int, float] = {HEADS: pair.heads, LAYERS: pair.layers}
                found |= enumerate(pair.by_layer)
                for layer, value in found.items():
                    of = {'measure': f'rank_correlation, {pair.compared}', 'layer': layer}
                    yield about | place | of | {'head': '', 'value': value}

    def markdown(self, given: FigureInput, data: Sequence[Ranks]) -> str:
        """Means over seeds: the first step and the last, then two ends, of the heads of a layer and
        of all."""
        ends = [looks['label'] for looks in LOOKS.values()]
        head = ['rank correlation', 'of heads', 'first step and end', *ends]
        return table_of(
            head,
            (
                [f'{ranks.label}, {title}', said, *_cells(ranks, part, of)]
                for ranks in data
                for part, title in TITLES.items()
                for of, said in (('layers', 'of a layer'), ('heads', 'of all layers'))
            ),
        )

    def caption(self, given: FigureInput, data: Sequence[Ranks]) -> str:
        found = captions.join(
            [f'{r.mean(INSIDE, END, int(r.steps[0])):.2f} ({r.label})' for r in data]
        )
        steps = captions.join([f'{step:,}' for step in data[0].steps])
        seeds = data[0].last.seeds
        return (
            'Order of heads by attention entropy over training. Top: entropy of every head of '
            f'{seeds[0]}, coloured by layer (from 0). Below: rank correlation (Spearman) of the '
            'entropies of the heads of a layer with those at the end of the training, mean of '
            f'layers, in {TITLES[INSIDE]} and in {TITLES[BEYOND]}. In {TITLES[INSIDE]} it is '
            f'{found} after step {data[0].steps[0]:,}. Horizontal lines: the same between the ends '
            f'of two trainings. Measured after {steps} steps. '
            f'{length_axes.seeds_caption(len(seeds))} '
            + captions.sources({ranks.label: list(ranks.last.records) for ranks in data})
        )


def _cells(ranks: Ranks, part: Range, of: str) -> list[str]:
    found = [ranks.mean(part, END, int(ranks.steps[0]), of)]
    found += [ranks.mean(part, compared, None, of) for compared in LOOKS]
    return ['' if mean is None else f'{mean:.2f}' for mean in found]


def _groups(figure: str, options: Mapping[str, Any], key: str) -> dict[str, list[str]]:
    """Label -> its groups."""
    found: dict[str, list[str]] = {}
    for entry in options.get(key, ()):
        check_options(figure, entry, ('group', 'label'), ('group', 'label'), key)
        found.setdefault(entry['label'], []).append(entry['group'])
    return found


def _ranks(given: FigureInput, label: str, names: list[str], again: list[str]) -> Ranks:
    """ValueError where groups of a label differ in seeds or runs, or are of the same step."""
    groups = [BySeed.of(given, name) for name in (*names, *again)]
    check_seeds(given, groups)
    own = groups[: len(names)]
    if len({tuple(r.attributes['run_id'] for r in group.records) for group in own}) > 1:
        raise ValueError(f'figure {given.name!r}: the groups of {label!r} are of several runs')
    step_of = {g.group: g.shared(lambda r: int(r.attributes['step']), 'step') for g in own}
    if len(set(step_of.values())) < len(own):
        raise ValueError(
            f'figure {given.name!r}: two groups of {label!r} are of the same step of its training: '
            f'{step_of}'
        )
    if own[0].records[0]['entropy'].shape[1] < head_entropies.FEWEST:
        raise ValueError(
            f'figure {given.name!r}: ranks of heads need {head_entropies.FEWEST} heads a layer'
        )
    own.sort(key=lambda group: step_of[group.group])
    bits = {
        part: np.array([[head_entropies.bits(r, part) for r in g.records] for g in own])
        for part in TITLES
    }
    others = [record for group in groups[len(names) :] for record in group.records]
    other = {
        part: np.array([head_entropies.bits(r, part) for r in others]) for part in TITLES if others
    }
    return Ranks(label, own[-1], np.array(sorted(step_of.values())), bits, other)


def _pair(
    compared: str, step: int, seeds: tuple[str, str], first: np.ndarray, second: np.ndarray
) -> Pair:
    heads = head_entropies.rank_correlation(first, second)
    by_layer = list(map(head_entropies.rank_correlation, first, second))
    return Pair(compared, step, *seeds, heads, by_layer)


def _draw_ranks(axes: mpl.Axes, ranks: Ranks, part: Range) -> None:
    found = [pair.layers for pair in ranks.pairs(part) if pair.compared == END]
    layers_SP = np.array(found).reshape(len(ranks.steps) - 1, -1).T
    axes.plot(ranks.steps[:-1], layers_SP.mean(axis=0), color=style.BLACK, marker='o', markersize=4)
    length_axes.draw_band(axes, ranks.steps[:-1], layers_SP, style.BLACK)
    for compared, looks in LOOKS.items():
        if (mean := ranks.mean(part, compared)) is not None:
            axes.axhline(mean, **looks)
