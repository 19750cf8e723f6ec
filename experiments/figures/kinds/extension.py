"""A checkpoint before and after it was made to read further: loss and entropy by position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.figures.base import Figure, kind
from experiments.figures.claims import extension as claims
from experiments.figures.given import FigureInput, check_differ
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import position_curve
from experiments.figures.read.position_curve import PositionCurve
from nope.records import Records

# Each with its label and its colour, in the order of the legend.
ROLES = {
    'before': ('before', style.COLORS[1]),
    'uniform': ('one multiplier for all heads', style.COLORS[4]),
    'after': ('after', style.COLORS[0]),
}


Curves = Mapping[str, PositionCurve]  # by role


@kind('extension')
class ExtensionFigure(Figure[Curves]):
    """Options: before, after and, if wanted, uniform, names of records measured on the same
    windows."""

    OPTIONS, NEEDED = tuple(ROLES), ('before', 'after')
    SHARED = ('train_length', 'length', 'windows', 'data', 'split')
    RULES = claims.RULES
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
