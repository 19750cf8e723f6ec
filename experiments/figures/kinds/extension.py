"""A checkpoint before and after it was made to read further: loss and entropy by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.figures.base import (
    Claim,
    FigureInput,
    FigureOutput,
    check_options,
    check_records,
    runs_of,
    shared_attribute,
)
from experiments.figures.claims import extension as claims
from experiments.figures.claims.decide import decide
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import position_curve
from experiments.figures.read.position_curve import PositionCurve
from nope.records import Records

# Each with its default label and its colour, in the order of the legend.
ROLES = {
    'before': ('before', style.COLORS[1]),
    'uniform': ('one multiplier for all heads', style.COLORS[4]),
    'after': ('after', style.COLORS[0]),
}
OPTIONS = {*ROLES, 'labels'}
# Attributes that all of its records share.
SHARED = ('train_length', 'length', 'windows', 'data', 'split')


def required(name: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Record name -> evaluation. ValueError for options that figure `name` of this kind does
    not have."""
    check_options(name, options, OPTIONS, ('before', 'after'))
    check_options(name, options.get('labels') or {}, ROLES, where='labels')
    records = _records(options)
    labels = {role: _label(options, role) for role in records}
    for named in (records, labels):
        if len(set(named.values())) < len(named):
            raise ValueError(f'figure {name!r}: {" and ".join(named)} must differ, got {named}')
    return {record: 'positions' for record in records.values()}


@style.styled
def draw(given: FigureInput) -> FigureOutput:
    """Options: before, after and, if wanted, uniform, names of records measured on the same
    windows; labels, {before, uniform, after}."""
    check_records(given, required(given.name, given.options))
    records = _records(given.options)
    names = list(records.values())
    shared = {attribute: shared_attribute(given, names, attribute) for attribute in SHARED}
    if shared['length'] <= shared['train_length']:
        raise ValueError(
            f'figure {given.name!r}: the windows of {shared["length"]} do not reach beyond the '
            f'training length {shared["train_length"]}; there is no extension to show'
        )
    data = _curves(given)
    return FigureOutput(
        given.name,
        _picture(data, captions.token_name(given.records[names[0]])),
        _rows(records, data),
        _caption(given, data),
        decide(claims.RULES, data),
        runs_of(given, names),
    )


def decided(given: FigureInput) -> list[Claim]:
    """Claims of an input that `draw` accepts."""
    return decide(claims.RULES, _curves(given))


def _curves(given: FigureInput) -> dict[str, PositionCurve]:
    """By role."""
    return {
        role: position_curve.read(_label(given.options, role), given.records[record])
        for role, record in _records(given.options).items()
    }


def _records(options: Mapping[str, Any]) -> dict[str, str]:
    """Role -> record name, of the roles that are there."""
    return {role: options[role] for role in ROLES if options.get(role)}


def _label(options: Mapping[str, Any], role: str) -> str:
    return (options.get('labels') or {}).get(role, ROLES[role][0])


def _picture(data: Mapping[str, PositionCurve], token: str) -> mpl.Figure:
    figure = style.new_figure(10.6, 4.4)
    loss, entropy = figure.subplots(1, 2)
    _draw_loss(loss, data, token)
    _draw_entropy(entropy, data)
    bound = style.bound(entropy, data['before'].positions)
    for axes in (loss, entropy):
        length = _position_axis(axes, data['before'], token)
    handles = [mpl.Line2D([], [], color=ROLES[r][1], label=c.name) for r, c in data.items()]
    figure.legend(handles=[*handles, bound, length], loc='outside lower center', ncols=3)
    return figure


def _draw_loss(axes: mpl.Axes, data: Mapping[str, PositionCurve], token: str) -> None:
    for role, curve in data.items():
        axes.plot(curve.positions, curve.smoothed, color=ROLES[role][1])
    axes.set_ylim(position_curve.loss_limits(list(data.values())))
    axes.set_ylabel(f'loss (nats per {token})')
    axes.set_title('loss')


def _draw_entropy(axes: mpl.Axes, data: Mapping[str, PositionCurve]) -> None:
    for role, curve in data.items():
        axes.plot(curve.positions, curve.entropy_bits, color=ROLES[role][1])
    axes.set_ylim(position_curve.entropy_limits(list(data.values())))
    axes.set_ylabel('mean attention entropy (bits)')
    axes.set_title('attention entropy')


def _position_axis(axes: mpl.Axes, curve: PositionCurve, token: str) -> mpl.Line2D:
    """Ticks say the position and, below it, its multiple of L. Returns the line at L."""
    length = curve.train_length
    style.position_axis(axes, len(curve.positions), length)
    axes.xaxis.set_major_formatter(
        mpl.FuncFormatter(lambda x, _: f'{x:,.0f}\n{x / length:.4g} L' if x else '0')
    )
    axes.set_xlabel(f'position ({token}s)')
    return style.training_length(axes, length)


def _caption(given: FigureInput, data: Mapping[str, PositionCurve]) -> str:
    records = {role: given.records[name] for role, name in _records(given.options).items()}
    after = data['after']
    target = int(after.positions[-1])
    return (
        f'A model trained at L = {after.train_length:,} and made to read {target:,} '
        f'{captions.token_name(records["after"])}s, {target / after.train_length:.3g} L. Left: '
        f'loss against position. {captions.smoothing(after.half)}. Right: attention entropy, mean '
        'over all layers and heads, not smoothed; dashed: the bound log2(i) of even attention. '
        'Dotted: the training length L. '
        + ''.join(_found(data[role].name, r) for role, r in records.items() if role != 'before')
        + captions.sources({data[role].name: [r] for role, r in records.items()})
    )


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


def _rows(records: Mapping[str, str], data: Mapping[str, PositionCurve]) -> list[dict[str, Any]]:
    return [
        {'role': role, 'record': records[role], 'label': curve.name} | row
        for role, curve in data.items()
        for row in position_curve.rows(curve)
    ]
