"""Claims about loss and keys without local heads, and without heads that have no position."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.roles import Roles, Shape, Undecided

LOCAL, WITHOUT = 'local', 'nope'
ROLES: Mapping[str, Shape] = {LOCAL: Shape.ONE, WITHOUT: Shape.ONE}


@dataclasses.dataclass(frozen=True)
class Effect:
    """Effect of silenced heads on loss and retrieval of a model, by multiples of L.

    silenced: layer and head of each. loss: rise in nats. keys: share of keys no longer repeated.
    """

    label: str
    silenced: tuple[tuple[int, ...], ...]
    loss: Mapping[float, float]
    keys: Mapping[float, float]


@dataclasses.dataclass(frozen=True)
class Effects:
    """Of single heads, and of several silenced together.

    whole: share of keys that the model repeats with all heads, by multiples of L.
    """

    heads: Sequence[Effect]
    groups: Sequence[Effect]
    whole: Mapping[float, float]


LEAST = CLAIMS['global_carry_keys'].thresholds['points']
Player = tuple[Effect, Effects]


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
    if 100 * every.whole[far] < LEAST:
        raise Undecided(f'with all heads {100 * every.whole[far]:g} % of the keys are repeated')
    # A tenth of the prompts may fall short of it by a rounding error.
    needed = [effect for effect in every.heads if 100 * effect.keys[far] >= LEAST - 1e-9]
    others = [effect for effect in needed if effect.silenced[0] not in local.silenced]
    measured = {
        'at': f'{far:g} L',
        'keys_lost_without_head': {
            kind: {'.'.join(map(str, e.silenced[0])): e.keys[far] for e in effects}
            for kind, effects in (
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
        f'{LEAST:g} percentage points of keys are lost at the '
        'longest length.',
        _keys,
    ),
)
