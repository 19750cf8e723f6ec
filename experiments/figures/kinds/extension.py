"""A checkpoint before and after it was made to read further: loss and entropy by position."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.figures.base import Figure, kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.given import FigureInput, check_differ
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import position_curve
from experiments.figures.read.position_curve import THRESHOLD, PositionCurve
from nope.records import Records

COSTS = CLAIMS['extension_costs'].thresholds['nats']
NOISE = CLAIMS['extension_reaches'].thresholds['noise_nats']

# Each with its label and its colour, in the order of the legend.
ROLES = {
    'before': ('before', style.COLORS[1]),
    'uniform': ('one multiplier for all heads', style.COLORS[4]),
    'after': ('after', style.COLORS[0]),
}

# By role, measured on the same windows, which reach beyond L.
Curves = Mapping[str, PositionCurve]


def _gains(curves: Curves) -> Measured:
    before = curves['before']
    length, end = before.train_length, int(before.positions[-1])
    ranges = {_named(low, high, length): (low, high) for low, high in _ranges(length, end)}
    beyond = _compared(curves, length, end)
    losses = {name: _compared(curves, *found) for name, found in ranges.items()}
    measured = {'loss_nats': {**losses, f'all of {_named(length, end, length)}': beyond}}
    numbers = (number('after - before beyond L', beyond['after_minus_before'], 'nats', (0,)),)
    return measured, beyond['after_minus_before'] < 0, numbers


def _costs(curves: Curves) -> Measured:
    inside = _compared(curves, 0, curves['before'].train_length)
    holds = inside['after_minus_before'] <= COSTS
    what = 'after - before over (0, L]'
    numbers = (number(what, inside['after_minus_before'], 'nats', (COSTS,)),)
    return {'loss_inside_L_nats': inside}, holds, numbers


def _reaches(curves: Curves) -> Measured:
    reads = {role: curve.loss_bend() for role, curve in curves.items()}
    before, after = reads['before'], reads['after']
    end = curves['before'].positions[-1] / curves['before'].train_length
    noise = max(curve.noise() for curve in curves.values())
    measured = {'reads_up_to_in_L': reads, 'measured_up_to_in_L': end, 'noise_nats': noise}
    holds = None if before is None else after is None or after > before
    if noise > NOISE:
        holds = None
    numbers = (number('before reads to', before, 'L'), number('after', after, 'L'))
    return measured, holds, (*numbers, number('noise', noise, 'nats'))


def _compared(curves: Curves, low: float, high: float) -> dict[str, Any]:
    """Mean loss over (low, high] of each curve, and after minus before."""
    losses = {role: curve.mean_loss(low, high) for role, curve in curves.items()}
    return losses | {'after_minus_before': losses['after'] - losses['before']}


def _ranges(length: int, end: int) -> list[tuple[int, int]]:
    """(0, L], (L, 2L], (2L, 4L] ...; the last one ends at `end`."""
    doublings = length * 2 ** np.arange(int(np.ceil(np.log2(end / length))))
    edges = [0, *doublings.tolist(), end]
    return list(itertools.pairwise(edges))


def _named(low: int, high: int, length: int) -> str:
    """'(L, 2L]'."""
    return f'({_multiple(low, length)}, {_multiple(high, length)}]'


def _multiple(position: int, length: int) -> str:
    if position == 0:
        return '0'
    return 'L' if position == length else f'{position / length:.4g}L'


RULES: tuple[Rule[Curves], ...] = (
    Rule(
        'extension_gains',
        'The mean loss over all positions beyond L, up to the end of the windows, is lower after '
        'than before.',
        _gains,
    ),
    Rule(
        'extension_costs',
        f'The mean loss over (0, L] is after at most {COSTS} nats above before.',
        _costs,
    ),
    Rule(
        'extension_reaches',
        'Reads further after than before. A curve reads up to the first position beyond L/2 from '
        'which its smoothed loss exceeds its own mean over [L/2, L] by '
        f'{THRESHOLD} nats for L/8 positions; none within the positions measured counts as '
        'further. Undecided where the standard error of a smoothed loss exceeds '
        f'{NOISE} nats: more windows lower it.',
        _reaches,
    ),
)


@kind('extension')
class ExtensionFigure(Figure[Curves]):
    """Options: before, after and, if wanted, uniform, names of records measured on the same
    windows."""

    OPTIONS, NEEDED = tuple(ROLES), ('before', 'after')
    SHARED = ('train_length', 'length', 'windows', 'data', 'split')
    RULES = RULES
    RESAMPLED = True

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        records = _records(options)
        check_differ(name, ' and '.join(records), list(records.values()))
        return dict.fromkeys(records.values(), 'positions')

    def read(self, given: FigureInput) -> Curves:
        records = {role: given.records[name] for role, name in _records(given.options).items()}
        facts = records['before'].attributes
        if facts['length'] <= facts['train_length']:
            raise ValueError(
                f'figure {given.name!r}: the windows of {facts["length"]} do not reach beyond the '
                f'training length {facts["train_length"]}; there is no extension to show'
            )
        return {r: position_curve.read(ROLES[r][0], x) for r, x in records.items()}

    def picture(self, given: FigureInput, data: Curves) -> mpl.Figure:
        token = captions.token_name(given.records[given.options['before']])
        figure = style.new_figure(10.6, 4.4)
        loss, entropy = figure.subplots(1, 2)
        for role, curve in data.items():
            loss.plot(curve.positions, curve.smoothed, color=ROLES[role][1])
            entropy.plot(curve.positions, curve.entropy_bits, color=ROLES[role][1])
        loss.set_ylim(position_curve.loss_limits(list(data.values())))
        loss.set_ylabel(f'loss (nats per {token})')
        loss.set_title('loss')
        entropy.set_ylim(position_curve.entropy_limits(list(data.values())))
        entropy.set_ylabel('mean attention entropy (bits)')
        entropy.set_title('attention entropy')
        bound = style.bound(entropy, data['before'].positions)
        for axes in (loss, entropy):
            length = _position_axis(axes, data['before'], token)
        handles = [mpl.Line2D([], [], color=ROLES[r][1], label=c.name) for r, c in data.items()]
        figure.legend(handles=[*handles, bound, length], loc='outside lower center', ncols=3)
        return figure

    def rows(self, given: FigureInput, data: Curves) -> Iterator[dict[str, Any]]:
        for role, curve in data.items():
            names = {'role': role, 'record': given.options[role], 'label': curve.name}
            yield from (names | row for row in position_curve.rows(curve))

    def caption(self, given: FigureInput, data: Curves) -> str:
        records = {role: given.records[name] for role, name in _records(given.options).items()}
        after = data['after']
        target = int(after.positions[-1])
        return (
            f'A model trained at L = {after.train_length:,} and made to read {target:,} '
            f'{captions.token_name(records["after"])}s, {target / after.train_length:.3g} L. Left: '
            f'loss against position. {captions.smoothing(after.half)}. Right: attention entropy, '
            'mean over all layers and heads, not smoothed; dashed: the bound log2(i) of even '
            'attention. Dotted: the training length L. '
            + ''.join(_found(data[role].name, r) for role, r in records.items() if role != 'before')
            + captions.sources({data[role].name: [r] for role, r in records.items()})
        )


def _records(options: Mapping[str, Any]) -> dict[str, str]:
    """Role -> record name, of the roles that are there."""
    return {role: options[role] for role in ROLES if options.get(role)}


def _position_axis(axes: mpl.Axes, curve: PositionCurve, token: str) -> mpl.Line2D:
    """Ticks say the position and, below it, its multiple of L. Returns the line at L."""
    length = curve.train_length
    style.position_axis(axes, len(curve.positions), length)
    axes.xaxis.set_major_formatter(
        mpl.FuncFormatter(lambda x, _: f'{x:,.0f}\n{x / length:.4g} L' if x else '0')
    )
    axes.set_xlabel(f'position ({token}s)')
    return style.training_length(axes, length)


def _found(label: str, records: Records) -> str:
    """Sentence about the search of lambda and its result; '' where the model has none."""
    facts, multipliers = records.attributes, records['multiplier']
    if facts['multiplier'] is None:
        return (
            f'Lambda of {label}: {facts["lam"]}, searched for {facts["step"]:,} steps with '
            f'every weight frozen; {multipliers.min():.3g} to {multipliers.max():.3g}, mean '
            f'{multipliers.mean():.3g}, in multiples of 1/sqrt(H). '
        )
    one = float(facts['multiplier'])
    return '' if one == 1 else f'Lambda of {label}: {one:g}/sqrt(H) in every head. '
