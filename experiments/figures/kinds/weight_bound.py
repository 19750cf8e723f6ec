"""Largest weight of one key among n, against the bound of the range of the logits, by head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, Measures, check_choice
from experiments.figures.look import captions, length_axes, mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read import key_attention
from experiments.figures.read.by_seed import check_seeds
from experiments.figures.read.key_attention import KeyAttention

MOST = 4  # panels side by side
# What is drawn -> words, colour.
LINES = {
    'bound': ('bound of the range of its logits', style.COLORS[1]),
    'base_bound': ("the base model's range times p", style.COLORS[4]),
    'kept': ('lead over the others kept from L', style.COLORS[2]),
    'largest': ('largest weight of one key', style.COLORS[0]),
}
FINDER: Any = '-'  # line styles
MEDIAN: Any = (0, (1.5, 1.5))


def bound(ranges: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Upper limit of the weight of one key among `keys`, of logits that differ by `ranges` nats at
    most: e^r / (n - 1 + e^r).

    The weight is 1 / (1 + sum over the others of e^(z_j - z)). Each of the n - 1 terms is at least
    e^-r, since z - z_j <= r. For logits in [-b, b] r is 2 b at most. Equality: all others are
    the lowest.
    """
    return 1 / (1 + (keys - 1) * np.exp(-ranges))


def lead(weights: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The logit with this weight less ln of the mean of exp(logit) over the other keys, in nats.
    `bound` of it is the weight itself: it is the range of others that are all alike."""
    weights = np.clip(weights, 1e-30, 1 - 1e-12)
    return np.log(weights / (1 - weights)) + np.log(keys - 1)


class Limits(NamedTuple):
    """A model and its base, None where it is one itself. lines: by name of LINES, [S, n, layer,
    head]."""

    model: KeyAttention
    base: KeyAttention | None
    lines: Mapping[str, np.ndarray]


@kind('weight_bound')
class WeightBoundFigure(Figure[Sequence[Limits]]):
    """Options: curves, [{group, label, base}] of records '<group>/<seed>'; base, the group of the
    model that a multiplier was searched on, is another of them."""

    OPTIONS = NEEDED = ('curves',)
    MEASURES: ClassVar[Measures] = key_attention.MEASURES
    SHARED = ('train_length',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        found = key_attention.needs(name, options, MOST, ('base',))
        groups = [curve['group'] for curve in options['curves']]
        for curve in options['curves']:
            if 'base' in curve:
                others = [group for group in groups if group != curve['group']]
                check_choice(name, 'base', curve['base'], others)
        return found

    def read(self, given: FigureInput) -> list[Limits]:
        curves = given.options['curves']
        models = {c['group']: key_attention.read(given, c['group'], c['label']) for c in curves}
        check_seeds(given, [model.keys for model in models.values()])
        return [_limits(given, models[c['group']], models.get(c.get('base'))) for c in curves]

    def picture(self, given: FigureInput, data: Sequence[Limits]) -> mpl.Figure:
        figure = style.new_figure(3.0 * len(data) + 0.8, 4.4)
        panels = figure.subplots(1, len(data), squeeze=False, sharey=True)[0]
        for limits, axes in zip(data, panels, strict=True):
            multiples = limits.model.keys.multiples
            for name, values in limits.lines.items():
                for look, line in zip((FINDER, MEDIAN), _shown(limits.model, values), strict=True):
                    axes.plot(multiples, line, color=LINES[name][1], linestyle=look, linewidth=1.4)
            length_axes.set_axis(axes, multiples)
            axes.set_xlabel('length of the prompt n / L')
            axes.axvline(1.0, color=style.GREY, linestyle=':', linewidth=1.0)
            axes.set_title(limits.model.label)
            axes.set_yscale('log')
            axes.set_ylim(top=1.3)
        style.plain_log_ticks(panels[0].yaxis)
        panels[0].set_ylabel('weight')
        drawn = [name for name in LINES if any(name in limits.lines for limits in data)]
        handles = [mpl.Line2D([], [], color=LINES[n][1], label=LINES[n][0]) for n in drawn]
        handles += [
            mpl.Line2D([], [], color=style.BLACK, linestyle=look, label=word)
            for look, word in ((FINDER, 'the head that finds the key'), (MEDIAN, 'median head'))
        ]
        grey: dict[str, Any] = {'color': style.GREY, 'linestyle': ':', 'linewidth': 1.0}
        handles.append(mpl.Line2D([], [], **grey, label='training length L'))
        figure.legend(handles=handles, loc='outside lower center', ncols=4)
        return figure

    def rows(self, given: FigureInput, data: Sequence[Limits]) -> Iterator[dict[str, Any]]:
        """One a record, length and head; layers and heads count from 0. reach_over_L: of the bound
        of weight 1/2, 1 + e^r keys."""
        for model, _, lines in data:
            finders = model.finders
            for at in np.ndindex(model.largest.shape):
                s, i, layer, head = at
                yield {
                    'record': model.keys.names[s],
                    'label': model.label,
                    'seed': model.keys.seeds[s],
                    'length_over_L': float(model.keys.multiples[i]),
                    'keys': int(model.seen[i]),
                    'layer': layer,
                    'head': head,
                    'finds': (layer, head) == finders[s],
                    'multiplier': float(model.multipliers[at]),
                    'range': float(model.ranges[at]),
                    'reach_over_L': _reach(model, model.ranges[at]),
                    **{name: float(lines[name][at]) if name in lines else '' for name in LINES},
                }

    def markdown(self, given: FigureInput, data: Sequence[Limits]) -> str:
        """Of the head that finds the key, at the length next to L and at the longest."""
        head = ['', 'n / L', 'p', 'range', 'reach of 1/2 over L', *LINES]
        rows = []
        for model, _, lines in data:
            for i in (_at_length(model), len(model.seen) - 1):
                values = (model.multipliers, model.ranges, *(lines.get(name) for name in LINES))
                p, r, *shares = (None if v is None else _shown(model, v)[0][i] for v in values)
                cells = ['' if share is None else f'{share:.3f}' for share in shares]
                place = [model.label, f'{model.keys.multiples[i]:g}']
                rows.append([*place, f'{p:.2f}', f'{r:.1f}', f'{_reach(model, r):.3g}', *cells])
        return table_of(head, rows)

    def caption(self, given: FigureInput, data: Sequence[Limits]) -> str:
        keys = data[0].model.keys
        labelled = {m.label: [given.records[name] for name in m.keys.names] for m, _, _ in data}
        return (
            'Largest weight of one key, of the query that must find the passkey. A head whose '
            'logits differ by r nats at most gives one key among n at most e^r / (n - 1 + e^r). '
            'The range r is the largest over prompts of a length, and a multiplier p makes it p r '
            'for the same input. '
            'The lead of a logit is taken over the log of the mean of exp of the others. Kept from '
            'L, it would give the green weights. Solid lines are the head with the most weight on '
            'the key in prompts of up to L, dotted lines the median over heads. '
            f'L = {keys.train_length:,}. '
            f'{length_axes.seeds_caption(len(keys.seeds), shaded=False)} '
            f'{captions.sources(labelled)}'
        )


def _limits(given: FigureInput, model: KeyAttention, base: KeyAttention | None) -> Limits:
    keys_n = model.seen[:, None, None].astype(np.float64)
    lines = {'bound': bound(model.ranges, keys_n)}
    if base is not None:
        if not np.array_equal(base.seen, model.seen):
            raise ValueError(
                f'figure {given.name!r}: {model.keys.name!r} and its base {base.keys.name!r} were '
                f'asked at different lengths: {model.seen.tolist()} and {base.seen.tolist()}'
            )
        lines['base_bound'] = bound(model.multipliers / base.multipliers * base.ranges, keys_n)
    at = _at_length(model)
    lines['kept'] = bound(lead(model.largest, keys_n)[:, at : at + 1], keys_n)
    return Limits(model, base, {**lines, 'largest': model.largest})


def _at_length(model: KeyAttention) -> int:
    """Index of the longest prompts of up to L."""
    return int(np.flatnonzero(model.keys.multiples <= 1)[-1])


def _reach(model: KeyAttention, span: Any) -> float:
    return float((1 + np.exp(span)) / model.keys.train_length)


def _shown(model: KeyAttention, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the head that finds the key, and the median over heads, [n] each; means over seeds."""
    found = np.mean([v[:, i, j] for v, (i, j) in zip(values, model.finders, strict=True)], axis=0)
    return found, np.median(values, axis=(2, 3)).mean(axis=0)
