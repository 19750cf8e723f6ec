"""Loss that rises and keys that are lost when one head is silenced, for every head of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.figures import roles
from experiments.figures.base import Figure, kind
from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.given import FigureInput, check_options
from experiments.figures.look import captions, mpl, style
from experiments.figures.read import frontier_point, length_group
from experiments.figures.read.frontier_point import TIMES, FrontierPoint
from experiments.figures.roles import Roles, Shape, Undecided

LOCAL, WITHOUT = 'local', 'nope'
ROLES: Mapping[str, Shape] = {LOCAL: Shape.ONE, WITHOUT: Shape.ONE}
LEAST = CLAIMS['global_carry_keys'].thresholds['points']

POINT_KEYS = {'label', 'loss', 'keys'}
COLORS = 'magma_r'
FRAME: dict[str, Any] = {'fill': False, 'edgecolor': style.COLORS[0], 'linewidth': 1.4}


@dataclasses.dataclass(frozen=True)
class Effect:
    """Effect of silenced heads on loss and retrieval of a model, by multiples of L.

    silenced: layer and head of each. loss: rise in nats. keys: share of keys no longer repeated.
    """

    label: str
    silenced: tuple[tuple[int, ...], ...]
    loss: Mapping[float, float]
    keys: Mapping[float, float]


class Silenced(NamedTuple):
    """The whole model, and the effects of silencing its heads, one at a time or several."""

    base: FrontierPoint
    heads: Sequence[Effect]
    groups: Sequence[Effect]


Player = tuple[Effect, Silenced]  # a group, among all


def _loss(players: Roles[Player]) -> Measured:
    local, other = players[LOCAL][0], players[WITHOUT][0]
    measured = {
        'rise_without_local_nats': {f'{m:g} L': v for m, v in local.loss.items()},
        'rise_without_nope_nats': {f'{m:g} L': v for m, v in other.loss.items()},
    }
    rises = {m: local.loss[m] - other.loss[m] for m in local.loss}
    numbers = tuple(
        number(f'rise without local - without the others, at {m:g} L', rise, 'nats', (0.0,))
        for m, rise in rises.items()
    )
    return measured, all(rise > 0 for rise in rises.values()), numbers


def _keys(players: Roles[Player]) -> Measured:
    local, every = players[LOCAL]
    far = max(local.keys)
    keys = every.base.keys
    whole = keys.shares[:, keys.at(far)].item()
    if 100 * whole < LEAST:
        raise Undecided(f'with all heads {100 * whole:g} % of the keys are repeated')
    # A tenth of the prompts may fall short of it by a rounding error.
    needed = [effect for effect in every.heads if 100 * effect.keys[far] >= LEAST - 1e-9]
    others = [effect for effect in needed if effect.silenced[0] not in local.silenced]
    measured = {
        'at': f'{far:g} L',
        'keys_lost_without_head': {
            side: {'.'.join(map(str, e.silenced[0])): e.keys[far] for e in effects}
            for side, effects in (
                (WITHOUT, others),
                (LOCAL, [effect for effect in needed if effect not in others]),
            )
        },
    }
    most = [100 * e.keys[far] for e in every.heads if e.silenced[0] not in local.silenced]
    lost = number(
        f'most keys lost at {far:g} L without one',
        max(most, default=None),
        'points',
        limits=(LEAST,),
        ends=(-100.0, 100.0),
    )
    return measured, bool(others), (lost,)


RULES: tuple[Rule[Roles[Player]], ...] = (
    Rule(
        'local_carry_loss',
        'The mean loss rises more without the local heads than without the others, at every length '
        'measured.',
        _loss,
    ),
    Rule(
        'global_carry_keys',
        'There is a head without position encoding, silenced alone, without which at least '
        f'{LEAST:g} percentage points of keys are lost at the longest length. Decided where the '
        'whole model repeats as many.',
        _keys,
    ),
)


@kind('head_effects')
class HeadEffectsFigure(Figure[Silenced]):
    """Loss and keys without single heads. Options:

    - base, heads, groups: the whole model, models without one head, and models without several;
      {label, loss, keys} each, names of records '<name>/<seed>' of one seed.
    - roles: of groups by label (`ROLES`).
    """

    OPTIONS = ('base', 'heads', 'groups', 'roles')
    NEEDED = ('base', 'heads', 'groups')
    RULES = RULES
    ALONE = True  # a head of one seed's model has nothing in common with that of another

    def needs(self, name: str, options: Mapping[str, Any]) -> dict[str, str]:
        points = _chosen(options)
        for point in points:
            check_options(name, point, POINT_KEYS, POINT_KEYS, 'points')
        labels = [point['label'] for point in options['groups']]
        roles.check(name, options, roles.parts(ROLES, labels, 'group'))
        found = {f'{point["loss"]}/': 'lengths' for point in points}
        return found | {f'{point["keys"]}/': 'passkey' for point in points}

    def read(self, given: FigureInput) -> Silenced:
        base, *others = (frontier_point.read(given, x) for x in _chosen(given.options))
        length_group.check_alike(given, [point.loss for point in (base, *others)])
        if len(base.loss.seeds) > 1:
            raise ValueError(
                f'figure {given.name!r}: heads are those of one seed, got {list(base.loss.seeds)}'
            )
        effects = [_effect(given, base, point) for point in others]
        count = len(given.options['heads'])
        for effect in effects[:count]:
            if len(effect.silenced) != 1:
                raise ValueError(
                    f'figure {given.name!r}: {effect.label!r} is among the heads, and '
                    f'{len(effect.silenced)} are silenced'
                )
        return Silenced(base, effects[:count], effects[count:])

    def shown(self, given: FigureInput, data: Silenced) -> Roles[Player]:
        players = {group.label: (group, data) for group in data.groups}
        return Roles(given.name, given.options, players, 'group')

    def picture(self, given: FigureInput, data: Silenced) -> mpl.Figure:
        role = (given.options.get('roles') or {}).get(LOCAL)
        local = next((e for e in data.groups if e.label == role), None)
        heads = given.records[data.base.names[0]].attributes['n_heads']
        layers = sorted({layer for effect in data.heads for layer, _ in effect.silenced})
        figure = style.new_figure(1.6 + 1.05 * heads * 2, 1.5 + 1.1 * len(layers))
        panels = figure.subplots(2, 2, squeeze=False)
        token = captions.token_name(given.records[data.base.names[0]])
        for column, multiple in enumerate((1.0, TIMES)):
            for row, what in enumerate(('loss', 'keys')):
                axes, grid = panels[row, column], np.full((len(layers), heads), np.nan)
                for effect in data.heads:
                    ((layer, head),) = effect.silenced
                    grid[layers.index(layer), head] = _value(effect, what, multiple)
                _draw(figure, axes, grid, layers, what, multiple, token)
                for layer, head in local.silenced if local else ():
                    if layer in layers:
                        corner = (head - 0.47, layers.index(layer) - 0.47)
                        axes.add_patch(mpl.Rectangle(corner, 0.94, 0.94, **FRAME))
        if local is not None:
            frame = mpl.Patch(label='local heads', **FRAME)
            figure.legend(handles=[frame], loc='outside upper center')
        return figure

    def rows(self, given: FigureInput, data: Silenced) -> Iterator[dict[str, Any]]:
        for effect in (*data.heads, *data.groups):
            for multiple in effect.loss:
                yield {
                    'label': effect.label,
                    'silenced': ' '.join(f'{layer}.{head}' for layer, head in effect.silenced),
                    'length_over_L': multiple,
                    'loss_rise_nats': effect.loss[multiple],
                    'keys_lost': effect.keys[multiple],
                }

    def caption(self, given: FigureInput, data: Silenced) -> str:
        base = data.base
        several = '; '.join(
            f'{g.label}: {g.loss[1.0]:+.3f} nats at L, {g.loss[TIMES]:+.3f} at {TIMES:g} L, '
            f'{100 * g.keys[1.0]:.0f} and {100 * g.keys[TIMES]:.0f} points of keys lost'
            for g in data.groups
        )
        sources = {base.label: [given.records[name] for name in base.names]}
        return (
            f'What {base.label} loses without one of its heads, whose output is set to 0: mean '
            f'loss of windows of L and {TIMES:g} L, above, and share of keys repeated '
            f'({base.keys.asked}, {base.keys.prompts} prompts of each length), below. Framed: '
            f'local heads. Without several at once: {several}. {captions.sources(sources)}'
        )


def _chosen(options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [options['base'], *options['heads'], *options['groups']]


def _effect(given: FigureInput, base: FrontierPoint, point: FrontierPoint) -> Effect:
    """Effect of silencing the heads of `point` in the model `base`, both of one seed. ValueError
    where the records do not say which heads."""
    silenced = {
        tuple(map(tuple, given.records[name].attributes.get('silenced', ())))
        for name in point.names
    }
    if len(silenced) != 1 or silenced == {()}:
        raise ValueError(
            f'figure {given.name!r}: the records of {point.label!r} must be of a model with the '
            f'same heads silenced, got {sorted(silenced)}'
        )
    loss, keys = {}, {}
    for multiple in (1.0, TIMES):
        i = point.loss.at(multiple)
        loss[multiple] = float((point.loss.loss_window - base.loss.loss_window)[:, i].item())
        shares = []
        for group in (base.keys, point.keys):
            j = group.at(multiple)
            if j is None:
                raise ValueError(
                    f'figure {given.name!r}: {group.name!r} was not asked for keys at '
                    f'{multiple:g} L'
                )
            shares.append(group.shares[:, j].item())
        keys[multiple] = float(shares[0] - shares[1])
    return Effect(point.label, silenced.pop(), loss, keys)


def _value(effect: Effect, what: str, multiple: float) -> float:
    """Rise of the loss, or points of keys lost."""
    return effect.loss[multiple] if what == 'loss' else 100 * effect.keys[multiple]


def _draw(
    figure: Any,
    axes: mpl.Axes,
    grid: np.ndarray,
    layers: Sequence[int],
    what: str,
    multiple: float,
    token: str,
) -> None:
    """grid: a row for each of `layers`, a column for each head; nan where it was not silenced."""
    at = 'L' if multiple == 1 else f'{multiple:g} L'
    top = max(np.nanmax(grid), 0.05) if what == 'loss' else 100.0
    image = axes.imshow(grid, cmap=COLORS, vmin=0, vmax=top, aspect='auto')
    for (row, head), value in np.ndenumerate(grid):
        if np.isnan(value):
            continue
        dark = value > 0.55 * top
        text = f'{value:z.3f}' if what == 'loss' else f'{value:z.0f}'
        axes.text(
            *(head, row, text),
            ha='center',
            va='center',
            fontsize=8,
            color='white' if dark else 'black',
        )
    axes.set_xticks(range(grid.shape[1]))
    axes.set_yticks(range(grid.shape[0]), map(str, layers))
    axes.grid(False)
    axes.minorticks_off()
    axes.set_xlabel('head')
    axes.set_ylabel('layer')
    unit = f'nats per {token}' if what == 'loss' else 'percentage points'
    said = 'rise of the loss' if what == 'loss' else 'keys lost'
    axes.set_title(f'{said} at {at} ({unit})', fontsize=9)
    figure.colorbar(image, ax=axes, shrink=0.9)
