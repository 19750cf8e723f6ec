"""Weight of the query that must find a key, on the key and elsewhere, by length of the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, Measures
from experiments.figures.look import captions, head_lines, length_axes, mpl, style
from experiments.figures.look.web import table_of
from experiments.figures.read import key_attention
from experiments.figures.read.by_seed import check_seeds
from experiments.figures.read.key_attention import PARTS, KeyAttention

MOST = 5  # panels side by side
COLORS = dict(zip((*PARTS, 'rest'), (*style.COLORS[:3], '#D9D9D9'), strict=True))


@kind('key_attention')
class KeyAttentionFigure(Figure[Sequence[KeyAttention]]):
    """Options: curves, [{group, label}] of records '<group>/<seed>'."""

    OPTIONS = NEEDED = ('curves',)
    MEASURES: ClassVar[Measures] = key_attention.MEASURES
    SHARED = ('train_length',)

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        return key_attention.needs(name, options, MOST)

    def read(self, given: FigureInput) -> list[KeyAttention]:
        curves = given.options['curves']
        models = [key_attention.read(given, c['group'], c['label']) for c in curves]
        check_seeds(given, [model.keys for model in models])
        return models

    def picture(self, given: FigureInput, models: Sequence[KeyAttention]) -> mpl.Figure:
        figure = style.new_figure(2.6 * len(models) + 1.0, 6.0)
        grid = figure.subplots(2, len(models), squeeze=False, sharex='col', sharey=True)
        for model, (parts, heads) in zip(models, grid.T, strict=True):
            multiples, keys = model.keys.multiples, model.keys.shares.mean(axis=0)
            found = _parts(model)
            parts.stackplot(multiples, *found.values(), colors=list(COLORS.values()))
            parts.plot(multiples, keys, color=style.BLACK, marker='o', markersize=4, clip_on=False)
            parts.set_title(model.label)
            _draw_heads(heads, model)
            for axes in (parts, heads):
                length_axes.set_axis(axes, multiples)
                axes.axvline(1.0, color=style.GREY, linestyle=':', linewidth=1.0)
                axes.set_xlim(multiples[0], multiples[-1])
                axes.set_ylim(0, 1)
                axes.set_xlabel('')
            heads.set_xlabel('length of the prompt n / L')
        grid[0, 0].set_ylabel('weight of the head that finds the key')
        grid[1, 0].set_ylabel('weight on the key, by head')
        figure.legend(handles=_handles(models), loc='outside lower center', ncols=5)
        return figure

    def rows(self, given: FigureInput, models: Sequence[KeyAttention]) -> Iterator[dict[str, Any]]:
        """One a record, length and head; layers and heads count from 0."""
        for model in models:
            for s, finder in enumerate(model.finders):
                for i, layer, head in np.ndindex(model.largest.shape[1:]):
                    yield {
                        'record': model.keys.names[s],
                        'label': model.label,
                        'seed': model.keys.seeds[s],
                        'length_over_L': float(model.keys.multiples[i]),
                        'share_of_keys': float(model.keys.shares[s, i]),
                        'layer': layer,
                        'head': head,
                        'finds': (layer, head) == finder,
                        **{part: float(model.weights[part][s, i, layer, head]) for part in PARTS},
                    }

    def markdown(self, given: FigureInput, models: Sequence[KeyAttention]) -> str:
        """Keys repeated, and parts of the weight, by length."""
        rows = []
        for model in models:
            keys, parts = model.keys.shares.mean(axis=0), _parts(model)
            for i, multiple in enumerate(model.keys.multiples):
                shares = [f'{values[i]:.2f}' for values in parts.values()]
                rows.append([model.label, f'{multiple:g}', f'{keys[i]:.2f}', *shares])
        return table_of(['', 'n / L', 'keys repeated', *COLORS], rows)

    def caption(self, given: FigureInput, models: Sequence[KeyAttention]) -> str:
        first = models[0]
        token = captions.token_name(given.records[first.keys.names[0]])
        labelled = {m.label: [given.records[name] for name in m.keys.names] for m in models}
        return (
            f'Attention of the query that must find the key, which predicts its first {token} with '
            f"a digit. Top: where the weight lies of the head with the most weight on the key's "
            f'{token}s in prompts of up to L. The latest are {first.span:,} {token}s. The black '
            'line is the share of keys repeated. Bottom: weight on the key of every head and seed. '
            f'L = {first.keys.train_length:,}. '
            f'{length_axes.seeds_caption(len(first.keys.seeds), shaded=False)} '
            f'{captions.sources(labelled)}'
        )


def _parts(model: KeyAttention) -> dict[str, np.ndarray]:
    """Part of the weight of the head that finds the key -> [n], means over seeds."""
    found = {
        part: np.mean([weights[s, :, i, j] for s, (i, j) in enumerate(model.finders)], axis=0)
        for part, weights in model.weights.items()
    }
    return {**found, 'rest': np.maximum(1 - sum(found.values()), 0)}


def _draw_heads(axes: mpl.Axes, model: KeyAttention) -> None:
    for weights_nLN in model.weights['key']:
        colors = style.head_colors(weights_nLN.shape[1])
        for layer, color in enumerate(colors):
            axes.plot(model.keys.multiples, weights_nLN[:, layer], color=color, linewidth=1.0)


def _handles(models: Sequence[KeyAttention]) -> list[Any]:
    words = {'key': 'key', 'first': 'first', 'latest': 'latest L/4', 'rest': 'rest'}
    if models[0].span * 4 != models[0].keys.train_length:
        words['latest'] = f'latest {models[0].span:,}'
    handles: list[Any] = [mpl.Patch(color=COLORS[p], label=word) for p, word in words.items()]
    black: dict[str, Any] = {'color': style.BLACK, 'marker': 'o', 'markersize': 4}
    handles.append(mpl.Line2D([], [], **black, label='keys repeated'))
    handles += head_lines.layer_handles(models[0].largest.shape[2])
    grey: dict[str, Any] = {'color': style.GREY, 'linestyle': ':', 'linewidth': 1.0}
    return [*handles, mpl.Line2D([], [], **grey, label='training length L')]
