"""Attention entropy of heads and loss over training, inside the training length and beyond it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, check_count, check_options, shared_attribute
from experiments.figures.look import captions, head_lines, mpl, style
from experiments.figures.read import head_entropies
from experiments.figures.read.head_entropies import BEYOND, INSIDE, Range
from nope.records import Records

MAX_MODELS = 3
OF_MODEL = ('run_id', 'model')  # attributes that the records of one model share
LINES: Mapping[Range, Literal['-', '--']] = {INSIDE: '-', BEYOND: '--'}


@dataclasses.dataclass(frozen=True)
class _History:
    """A model at S steps of its training.

    steps, tokens: [S], of its training. bits: range -> [S, N_layers, H], entropy of heads, mean
    over the range. loss: range -> nats [S].
    """

    label: str
    records: Sequence[str]
    steps: np.ndarray
    tokens: np.ndarray
    bits: Mapping[Range, np.ndarray]
    loss: Mapping[Range, np.ndarray]


Histories = Sequence[_History]


@kind('emergence')
class EmergenceFigure(Figure[Histories]):
    """Options: steps, [{record, label}]; the records of one label are those of one run at two or
    more steps of its training. Up to three labels."""

    OPTIONS = NEEDED = ('steps',)
    SHARED = ('train_length', 'length')

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for entry in options['steps']:
            check_options(name, entry, ('record', 'label'), ('record', 'label'), 'steps')
        models = _models(options)
        check_count(name, 'labels of steps', len(models), MAX_MODELS)
        for label, records in models.items():
            if len(set(records)) < 2:
                raise ValueError(
                    f'figure {name!r}: steps of {label!r} must be two or more, got {records}'
                )
        return dict.fromkeys((entry['record'] for entry in options['steps']), 'positions')

    def read(self, given: FigureInput) -> Histories:
        head_entropies.check_length(given, _first(given))
        return [_history(given, *model) for model in _models(given.options).items()]

    def picture(self, given: FigureInput, histories: Histories) -> mpl.Figure:
        bound = _bounds(given)
        figure = style.new_figure(3.5 * len(histories) + 1.2, 7.6)
        axes = figure.subplots(3, len(histories), squeeze=False, sharex='col', sharey='row')
        for history, (heads, means, losses) in zip(histories, axes.T, strict=True):
            head_lines.draw(heads, history.steps, history.bits[INSIDE], bound[INSIDE])
            for part, line in LINES.items():
                share = history.bits[part].mean(axis=(1, 2)) / bound[part]
                means.plot(history.steps, share, line, color=style.BLACK)
                losses.plot(history.steps, history.loss[part], line, color=style.BLACK)
            means.set_ylim(0, 1)
            heads.set_title(history.label)
            losses.set_xlabel('training step')
            losses.set_xscale('log')
            style.plain_log_ticks(losses.xaxis)
        token = captions.token_name(given.records[histories[0].records[0]])
        axes[0, 0].set_ylabel('entropy of each head (bits),\n(L/2, L]')
        axes[1, 0].set_ylabel('mean entropy over\nlog2(i) of even attention')
        axes[2, 0].set_ylabel(f'loss (nats per {token})')
        _legend(figure, max(history.bits[INSIDE].shape[1] for history in histories))
        return figure

    def rows(self, given: FigureInput, histories: Histories) -> Iterator[dict[str, Any]]:
        bound = _bounds(given)
        for history in histories:
            for (at, record), part in itertools.product(enumerate(history.records), LINES):
                common = {
                    'record': record,
                    'label': history.label,
                    'step': int(history.steps[at]),
                    'train_tokens': int(history.tokens[at]),
                    'above_L': part[0],
                    'up_to_L': part[1],
                }
                for (layer, head), bits in np.ndenumerate(history.bits[part][at]):
                    place = {'measure': 'entropy_bits', 'layer': layer, 'head': head}
                    yield common | place | {'value': float(bits), 'bound_bits': bound[part]}
                loss = {'value': float(history.loss[part][at]), 'bound_bits': ''}
                yield common | {'measure': 'loss_nats', 'layer': '', 'head': ''} | loss

    def caption(self, given: FigureInput, histories: Histories) -> str:
        steps = captions.join([f'{step:,}' for step in histories[0].steps])
        return (
            'Attention over training. Top: entropy of every head, mean over the positions i of '
            f'(L/2, L], coloured by layer (from 0); dashed: the bound log2(i). Middle: mean '
            'entropy of all heads as a share of that bound, in (L/2, L] and (2 L, 4 L]. Bottom: '
            f'mean loss in the same ranges. L = {_first(given).attributes["train_length"]:,}. '
            f'Measured after {steps} steps. '
            + captions.sources({h.label: [given.records[h.records[-1]]] for h in histories})
        )


def _first(given: FigureInput) -> Records:
    return given.records[given.options['steps'][0]['record']]


def _bounds(given: FigureInput) -> dict[Range, float]:
    """Mean of log2(i) over each range of positions, in bits."""
    return {part: head_entropies.bound(_first(given), part) for part in LINES}


def _models(options: Mapping[str, Any]) -> dict[str, list[str]]:
    """Label -> its records."""
    models: dict[str, list[str]] = {}
    for entry in options['steps']:
        models.setdefault(entry['label'], []).append(entry['record'])
    return models


def _history(given: FigureInput, label: str, names: Sequence[str]) -> _History:
    for attribute in OF_MODEL:
        shared_attribute(given, list(names), attribute)
    step_of = {name: int(given.records[name].attributes['step']) for name in names}
    if len(set(step_of.values())) < len(names):
        raise ValueError(
            f'figure {given.name!r}: two records of {label!r} are of the same step of its '
            f'training: {step_of}'
        )
    ordered = sorted(names, key=lambda name: step_of[name])
    found = [given.records[name] for name in ordered]
    bits = {part: np.stack([head_entropies.bits(r, part) for r in found]) for part in LINES}
    loss = {
        part: np.array(
            [r['loss'][head_entropies.within(r, part)].mean(dtype=np.float64) for r in found]
        )
        for part in LINES
    }
    tokens = np.array([records.attributes['train_tokens'] for records in found])
    steps = np.array([step_of[name] for name in ordered])
    return _History(label, ordered, steps, tokens, bits, loss)


def _legend(figure: mpl.Figure, layers: int) -> None:
    handles = [
        *head_lines.layer_handles(layers),
        *(
            mpl.Line2D([], [], color=style.BLACK, linestyle=line, label=head_entropies.TITLES[part])
            for part, line in LINES.items()
        ),
        head_lines.bound_handle(),
    ]
    figure.legend(handles=handles, loc='outside lower center', ncols=-(-len(handles) // 2))
