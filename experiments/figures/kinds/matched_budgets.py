"""Loss inside L, its rise and what multipliers gain, against width and against trained tokens."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.given import FigureInput, Known, check_differ, check_options
from experiments.figures.look import captions, mpl, style
from experiments.figures.look.length_axes import MARKERS
from experiments.figures.read import position_curve, positions_known
from experiments.figures.read.position_curve import THRESHOLD, PositionCurve
from nope.runtime.amounts import amount

COLUMNS = ('widths', 'tokens')
PARTS = ('base', 'uniform', 'headscale', 'rope')  # the last may be left out
NEEDED = ('width', *PARTS[:-1])
# Of each row of panels its axis and its lines, a quantity each with its label and colour.
APART, WINDOW = 'NoPE less RoPE\nin (L/2, L] (nats)', 'windows of {end:g} L\n(nats per {token})'
ROWS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    'loss in (L/2, L]\n(nats per {token})': {
        'loss_nats': ('NoPE', style.MODELS['NoPE']),
        'rope_loss_nats': ('RoPE', style.MODELS['RoPE']),
    },
    APART: {'nope_less_rope_nats': ('NoPE less RoPE', style.BLACK)},
    'loss rises from\n(multiples of L)': {
        'onset_L': ('NoPE', style.MODELS['NoPE']),
        'rope_onset_L': ('RoPE', style.MODELS['RoPE']),
    },
    WINDOW: {
        'rise_nats': ('rise of NoPE', style.MODELS['NoPE']),
        'uniform_gain_nats': ('one multiplier gains', style.RED),
        'headscale_gain_nats': ('HeadScale more', style.COLORS[3]),
    },
}


@dataclasses.dataclass(frozen=True)
class _Model:
    """A model's numbers by quantity, None where not measured. size: its parameters, in words."""

    record: str
    width: int
    size: str
    tokens: int
    values: Mapping[str, float | None]


Models = Mapping[str, Sequence[_Model]]


@kind('matched_budgets')
class MatchedBudgetsFigure(Figure[Models]):
    """Options: widths and tokens, each two or more of {width, base, uniform, headscale, rope?},
    the records of a model as trained, under one multiplier, under HeadScale and of RoPE beside it.
    All `widths` were trained on the same tokens, and all `tokens` have the same width."""

    OPTIONS = NEEDED = COLUMNS
    SHARED = ('train_length', 'length')
    MEANS = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        for column in COLUMNS:
            for entry in options[column]:
                check_options(name, entry, ('width', *PARTS), NEEDED, column)
            check_differ(name, f'{column}, by their base,', [e['base'] for e in options[column]])
            if len(options[column]) < 2:
                raise ValueError(f'figure {name!r}: {column} must be two or more')
        entries = [entry for column in COLUMNS for entry in options[column]]
        if len({'rope' in entry for entry in entries}) > 1:
            raise ValueError(f'figure {name!r}: rope must be given for every model or for none')
        return {entry[p]: 'positions' for entry in entries for p in PARTS if p in entry}

    def check_known(self, name: str, options: Mapping[str, Any], known: Known) -> None:
        positions_known.reaching_l(name, known)
        # Below the name of a record there are its seeds, which have the same budget.
        facts = {n: f for key, f in known.items() for n in (key, key.rpartition('/')[0])}
        _check_budgets(name, options, facts)

    def read(self, given: FigureInput) -> Models:
        facts = {name: records.attributes for name, records in given.records.items()}
        _check_budgets(given.name, given.options, facts)
        return {c: [_read(given, entry) for entry in given.options[c]] for c in COLUMNS}

    def picture(self, given: FigureInput, models: Models) -> mpl.Figure:
        first = given.records[models['widths'][0].record].attributes
        token, end = first['token'], first['length'] / first['train_length']
        measured = {k for m in _every(models) for k, value in m.values.items() if value is not None}
        shown = [row for row in ROWS if measured & set(ROWS[row])]
        figure = style.new_figure(7.4, 1.75 * len(shown) + 0.8)
        axes = figure.subplots(len(shown), 2, sharex='col', sharey='row')
        for column, beside in zip(COLUMNS, axes.T, strict=True):
            xs = [m.width if column == 'widths' else m.tokens for m in models[column]]
            for row, ax in zip(shown, beside, strict=True):
                lines = {k: looks for k, looks in ROWS[row].items() if k in measured}
                for mark, (quantity, (label, color)) in zip(MARKERS, lines.items(), strict=False):
                    found = [m.values[quantity] for m in models[column]]
                    ys = [np.nan if y is None else y for y in found]
                    ax.plot(xs, ys, color=color, marker=mark, markersize=4, label=label)
                if row in (APART, WINDOW):
                    ax.axhline(0, color=style.GREY, linewidth=0.8, zorder=1)
            _set_axis(beside[-1], models[column], xs, column, token)
        for row, ax in zip(shown, axes[:, 0], strict=True):
            ax.set_ylabel(row.format(token=token, end=end))
            if len(ax.get_legend_handles_labels()[1]) > 1:
                ax.legend()
        axes[0, 0].set_title(f'{amount(models["widths"][0].tokens)} {token}s each')
        axes[0, 1].set_title(f'width {models["tokens"][0].width}')
        return figure

    def rows(self, given: FigureInput, models: Models) -> Iterator[dict[str, Any]]:
        """One row a model, also of one in both columns."""
        for m in _every(models):
            place = {'record': m.record, 'width': m.width, 'parameters': m.size}
            yield {**place, 'train_tokens': m.tokens, **m.values}

    def caption(self, given: FigureInput, models: Models) -> str:
        widths, tokens = models['widths'], models['tokens']
        token = captions.token_name(given.records[widths[0].record])
        amounts = captions.join([amount(m.tokens) for m in tokens])
        missing = any(m.values['onset_L'] is None for m in _every(models))
        ends = {f'width {m.width}': [given.records[m.record]] for m in (widths[0], widths[-1])}
        return (
            f'Left: width and parameters grow, and all models read {amount(widths[0].tokens)} '
            f'{token}s. Right: width {tokens[0].width} reads {amounts} {token}s. '
            'The loss rises from the first position whose smoothed loss stays '
            f'{THRESHOLD} nats above its mean over [L/2, L] for L/8 positions'
            f'{"; points are missing where it does not" if missing else ""}. '
            'Bottom: means over windows, how far NoPE is above (L/2, L], what the best multiplier '
            'on validation windows gains on it, and HeadScale on that multiplier. '
            f'{captions.sources(ends)}'
        )


def _every(models: Models) -> Collection[_Model]:
    """Each model once."""
    return {m.record: m for column in COLUMNS for m in models[column]}.values()


def _check_budgets(name: str, options: Mapping[str, Any], facts: Known) -> None:
    """ValueError where models differ in what they must not."""
    for compared in (options['widths'], *([entry] for entry in options['tokens'])):
        read = {e[p]: facts[e[p]]['train_tokens'] for e in compared for p in PARTS if p in e}
        if len(set(read.values())) > 1:
            raise ValueError(f'figure {name!r}: these must have read the same tokens: {read}')
    shapes = {e['base']: facts[e['base']]['model'] for e in options['tokens']}
    if len(set(shapes.values())) > 1:
        raise ValueError(f'figure {name!r}: tokens must be of models of one shape, got {shapes}')
    numbers = [facts[e['base']]['train_tokens'] for e in options['tokens']]
    check_differ(name, 'numbers of tokens', numbers)


def _read(given: FigureInput, entry: Mapping[str, Any]) -> _Model:
    facts = given.records[entry['base']].attributes
    found = {p: position_curve.read(p, given.records[entry[p]]) for p in PARTS if p in entry}
    base, uniform, searched = (found[part] for part in PARTS[:-1])
    rope = found.get('rope')
    rope_loss = None if rope is None else _inside(rope)
    values = {
        'loss_nats': _inside(base),
        'rope_loss_nats': rope_loss,
        'nope_less_rope_nats': None if rope_loss is None else _inside(base) - rope_loss,
        'onset_L': base.loss_bend(),
        'rope_onset_L': None if rope is None else rope.loss_bend(),
        'rise_nats': base.loss.mean() - _inside(base),
        'uniform_gain_nats': base.loss.mean() - uniform.loss.mean(),
        'headscale_gain_nats': uniform.loss.mean() - searched.loss.mean(),
        'headscale_gain_at_end_nats': _end(uniform) - _end(searched),
    }
    size = facts['model'].rpartition(', ')[2].removesuffix(' parameters')
    return _Model(entry['base'], entry['width'], size, facts['train_tokens'], values)


def _inside(curve: PositionCurve) -> float:
    return curve.mean_loss(curve.train_length / 2, curve.train_length)


def _end(curve: PositionCurve) -> float:
    """Mean over the last L/4 positions, where the claim compares HeadScale."""
    last = float(curve.positions[-1])
    return curve.mean_loss(last - curve.train_length / 4, last)


def _set_axis(
    axes: mpl.Axes, models: Sequence[_Model], xs: Sequence[int], column: str, token: str
) -> None:
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_locator(mpl.FixedLocator(xs))
    axes.xaxis.set_minor_locator(mpl.NullLocator())
    if column == 'widths':
        axes.set_xticklabels([f'{m.width}\n{m.size}' for m in models])
        axes.set_xlabel('width, parameters')
    else:
        axes.set_xticklabels([amount(m.tokens) for m in models])
        axes.set_xlabel(f'{token}s of the training')
