"""Claims about entropy and loss against position, and the roles that curves play in them.

Positions are given in multiples of the training length L.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Every, Measured, Rule, beside
from experiments.figures.claims.headline import Number, Numbers, number
from experiments.figures.claims.verdict import ABOVE, BELOW, NEAR, Bound, every
from experiments.figures.read.position_curve import SENSITIVITY, THRESHOLD, PositionCurve
from experiments.figures.roles import Roles, Shape, Undecided

BASE, UNIFORM, HEADSCALE = 'base', 'uniform', 'headscale'
ROPE, ROPE_UNIFORM, NTK = 'rope', 'rope_uniform', 'ntk'
ROLES: Mapping[str, Shape] = {
    BASE: Shape.ONE,  # NoPE as it was trained
    UNIFORM: Shape.SEVERAL,  # NoPE with one multiplier for all heads
    HEADSCALE: Shape.BY_MULTIPLE,  # NoPE with multipliers searched at a multiple of L
    ROPE: Shape.ONE,  # as it was trained
    ROPE_UNIFORM: Shape.SEVERAL,
    NTK: Shape.ONE,  # RoPE with dynamic NTK
}
NAMES: Mapping[str, str] = {BASE: 'NoPE', ROPE: 'RoPE', NTK: 'RoPE-NTK'}

Curves = Roles[PositionCurve]


ONSETS, FACTOR = CLAIMS['onset'].numbers, CLAIMS['onset'].thresholds['factor']
MEET, MOVED = CLAIMS['bends_meet'].thresholds, CLAIMS['bends_move'].thresholds['factor']
Pick = Callable[[Curves], tuple[PositionCurve, PositionCurve]]


def _less(
    pick: Pick,
    low: float,
    high: float | None = None,
    mean: Callable[[PositionCurve, float, float], float] = PositionCurve.mean_loss,
) -> Callable[[Curves], dict[str, float]]:
    """Mean over (low L, high L] of one curve less that of another. Without `high` up to the end,
    from where a negative `low` counts."""

    def find(roles: Curves) -> dict[str, float]:
        one, other = pick(roles)
        length, end = one.train_length, int(one.positions[-1])
        place = (low * length + (end if low < 0 else 0), end if high is None else high * length)
        if place[0] >= place[1]:
            raise Undecided('no position beyond L was measured')
        return {'': mean(one, *place) - mean(other, *place)}

    return find


def _onset(roles: Curves) -> Measured:
    as_trained, extended = _as_trained(roles), roles.get(NTK)
    measured: dict[str, dict[str, Any]] = {
        c.name: {
            'paper': ONSETS[role],
            'onset': {str(t): c.loss_bend(t) for t in SENSITIVITY},
            'first_crossing': {str(t): c.loss_bend(t, sustained=False) for t in SENSITIVITY},
            'noise_nats': c.noise(),
        }
        for role, c in as_trained.items()
    }
    numbers = [number(f'{NAMES[r]} rises from', c.loss_bend(), 'L') for r, c in as_trained.items()]
    for role, c in as_trained.items():
        if extended is not None:
            onsets = {str(t): c.loss_bend(t, beside=extended) for t in SENSITIVITY}
            measured[c.name]['onset_beside_ntk'] = onsets
            paired = c.loss_bend(beside=extended)
            numbers.append(number(f'{NAMES[role]} beside RoPE-NTK from', paired, 'L'))

    def near_printed(threshold: float, beside: PositionCurve | None) -> bool:
        onsets = {r: _or_inf(c.loss_bend(threshold, beside=beside)) for r, c in as_trained.items()}
        near = all(1 / FACTOR <= o / ONSETS[role] <= FACTOR for role, o in onsets.items())
        return near and (len(onsets) < 2 or onsets[BASE] > onsets[ROPE])

    def as_printed(threshold: float) -> bool | None:
        alone, beside = (near_printed(threshold, x) for x in (None, extended))
        return alone if alone == beside else None

    return measured, _at_every_threshold(as_printed), tuple(numbers)


def _bends_meet(roles: Curves) -> Measured:
    as_trained = _as_trained(roles, or_else=NTK)
    measured: dict[str, Any] = {}
    numbers: list[Number] = []
    for role, c in as_trained.items():
        ratio = _entropy_over_loss(c)
        measured[c.name] = {**_bends(c), 'entropy_bend_over_loss_bend': ratio}
        numbers.append(number(f'{NAMES[role]} entropy bend / loss bend', ratio))
    extended = roles.get(NTK)
    if extended:
        measured[extended.name] = _bends(extended)
        first = _first_bend(extended)
        numbers.append(number('RoPE-NTK first bend', None if math.isinf(first) else first, 'L'))

    limit, far = MEET['factor'], MEET['ntk_reach']

    def meet(threshold: float) -> bool:
        ratios = [_entropy_over_loss(c, threshold) for c in as_trained.values()]
        near = all(ratio is not None and 1 / limit <= ratio <= limit for ratio in ratios)
        return near and (extended is None or _first_bend(extended, threshold) > far)

    if extended is not None and extended.positions[-1] < far * extended.train_length:
        raise Undecided(f'{NAMES[NTK]} was not measured to {far:g} L')
    return measured, _at_every_threshold(meet), tuple(numbers)


def _entropy_over_loss(curve: PositionCurve, threshold: float = THRESHOLD) -> float | None:
    loss, entropy = curve.loss_bend(threshold), curve.entropy_bend(threshold)
    return entropy / loss if entropy is not None and loss is not None else None


def _first_bend(curve: PositionCurve, threshold: float = THRESHOLD) -> float:
    return min(_or_inf(curve.loss_bend(threshold)), _or_inf(curve.entropy_bend(threshold)))


def _at_every_threshold(holds: Callable[[float], bool | None]) -> bool | None:
    """Verdict by bends at a threshold; None where the thresholds of `SENSITIVITY` disagree."""
    verdicts = {holds(threshold) for threshold in SENSITIVITY}
    return verdicts.pop() if len(verdicts) == 1 else None


def _bends_move(roles: Curves) -> Measured:
    measured: dict[str, Any] = {}
    parts: list[tuple[PositionCurve, Sequence[PositionCurve], bool]] = []
    lacking: list[str] = []
    numbers: Numbers = ()
    for as_trained, scaled, moves in ((BASE, UNIFORM, True), (ROPE, ROPE_UNIFORM, False)):
        try:
            base, curves = roles[as_trained], _sharpened(roles, scaled)
        except Undecided as reason:
            lacking.append(str(reason))
            continue
        measured[base.name] = _bends(base)
        measured |= {c.name: {**_bends(c), 'moved_outward': _outward(base, c)} for c in curves}
        parts.append((base, curves, moves))
        numbers += _moves(NAMES[as_trained], base, curves)

    def as_said(threshold: float) -> bool | None:
        return every(
            None if moved is None else moved == moves
            for base, curves, moves in parts
            for c in curves
            for moved in _outward(base, c, threshold).values()
        )

    holds = _at_every_threshold(as_said)
    return beside(lacking, measured, holds), holds, numbers


def _ranges(roles: Curves) -> Measured:
    """Loss and entropy by range of positions: a reading, nothing to decide."""
    measured = {}
    for c in roles.players.values():
        length, end = c.train_length, int(c.positions[-1])
        ranges = {'(0, L]': (0, 1), '(L/2, L]': (0.5, 1), '(L, 2L]': (1, 2), '(2L, 4L]': (2, 4)}
        ranges = {k: (a * length, b * length) for k, (a, b) in ranges.items() if b * length <= end}
        ranges['all'] = (0, end)
        measured[c.name] = {
            'loss_nats': {k: c.mean_loss(*r) for k, r in ranges.items()},
            'entropy_bits': {k: c.mean_entropy(*r) for k, r in ranges.items()},
        }
    curves = roles.players.values()
    numbers = [number(f'{c.name}, all', c.mean_loss(0, c.positions[-1]), 'nats') for c in curves]
    return measured, None, tuple(numbers)


def _as_trained(roles: Curves, or_else: str | None = None) -> dict[str, PositionCurve]:
    """NoPE and RoPE by role, those that are drawn. Undecided where neither is, nor `or_else`."""
    found = {role: curve for role in (BASE, ROPE) if (curve := roles.get(role))}
    if not found and not (or_else and roles.get(or_else)):
        wanted = [repr(role) for role in (BASE, ROPE, or_else) if role]
        raise Undecided(f'no curve has one of the roles {", ".join(wanted)}')
    return found


def _sharpened(roles: Curves, role: str) -> Sequence[PositionCurve]:
    """The curves of a role whose multiplier is above 1."""
    found = [c for c in roles.several(role) if c.sharpened]
    if not found:
        raise Undecided(f'no curve of the role {role!r} has a multiplier above 1')
    return found


def _largest(scaled: Sequence[PositionCurve]) -> PositionCurve:
    return max(scaled, key=lambda c: c.multiplier or 0)


def _pair(roles: Curves) -> tuple[PositionCurve, PositionCurve]:
    """HeadScale, of several searches the longest, and the uniform multiplier beside it."""
    searches = roles.by_multiple(HEADSCALE)
    return searches[max(searches)], _sharpened(roles, UNIFORM)[0]


def _bends(curve: PositionCurve) -> dict[str, Any]:
    return {
        'loss_bend': {str(t): curve.loss_bend(t) for t in SENSITIVITY},
        'entropy_bend': {str(t): curve.entropy_bend(t) for t in SENSITIVITY},
        'entropy_line_r2': curve.line_r2(),
    }


def _outward(
    base: PositionCurve, scaled: PositionCurve, threshold: float = THRESHOLD
) -> dict[str, bool | None]:
    """By bend, whether that of `scaled` lies further out than that of `base`; None where `base` has
    none."""
    pairs = {
        'loss': (base.loss_bend(threshold), scaled.loss_bend(threshold)),
        'entropy': (base.entropy_bend(threshold), scaled.entropy_bend(threshold)),
    }
    return {what: None if b is None else _or_inf(s) > MOVED * b for what, (b, s) in pairs.items()}


def _moves(name: str, base: PositionCurve, scaled: Sequence[PositionCurve]) -> Numbers:
    """Ratios of bends: under the largest multiplier, over those of the curve without one."""
    largest = _largest(scaled)
    ends = {
        'loss': (base.loss_bend(), largest.loss_bend()),
        'entropy': (base.entropy_bend(), largest.entropy_bend()),
    }
    return tuple(
        number(f'{name} {what} bend, multiplied / as trained', s / b if s and b else None)
        for what, (b, s) in ends.items()
    )


def _or_inf(position: float | None) -> float:
    return math.inf if position is None else position


_SENSITIVE = f'Not decided where thresholds of {", ".join(f"{t:g}" for t in SENSITIVITY)} disagree.'
RULES: tuple[Rule[Curves], ...] = (
    Rule(
        'parity',
        'Mean loss over (L/2, L] of NoPE less that of RoPE',
        Every(
            _less(lambda roles: (roles[BASE], roles[ROPE]), 0.5, 1),
            Bound(NEAR, 'nats'),
            'NoPE - RoPE',
            alone=True,
        ),
        (BASE, ROPE),
    ),
    Rule(
        'onset',
        'The loss starts to rise where the paper says, within a factor of '
        f'{FACTOR}, and where both are drawn that of NoPE later than that of RoPE; in multiples of '
        'L. The onset is the first position beyond L/2 from which the smoothed loss exceeds its '
        f'mean over [L/2, L] by {THRESHOLD} nats for L/8 positions. Where RoPE-NTK is drawn, whose '
        'loss does not rise there, nothing is decided unless the excess over its own on the same '
        f'windows says so too: what is hard in the text is in both. {_SENSITIVE}',
        _onset,
        (BASE,),
    ),
    Rule(
        'bends_meet',
        'In multiples of L, the two bends of NoPE and of RoPE as trained, where they are drawn, '
        f'lie within a factor of {MEET["factor"]}, and RoPE-NTK, where it is drawn, shows neither '
        f'bend up to {MEET["ntk_reach"]:g} L. Entropy bend: from where the mean entropy exceeds '
        'the line fitted to it against ln i on [L/4, L] (its R^2 is given) by '
        f'{THRESHOLD} bits for L/8 positions. Loss bend: the onset of claim 2. {_SENSITIVE}',
        _bends_meet,
        (BASE,),
    ),
    Rule(
        'bends_move',
        f'Outward by a factor above {MOVED}: every multiplier above 1 moves both bends of NoPE, '
        'and none moves a bend of RoPE. Bends as in claims 2 and 3, each curve against its own '
        'values inside L; none within the positions measured counts as further out. One of the two '
        f'alone can refute it, and not bear it out. {_SENSITIVE}',
        _bends_move,
        (BASE, UNIFORM),
    ),
    Rule(
        'uniform_hurts',
        'Mean loss over (0, L] with the largest multiplier less that without one',
        Every(
            _less(lambda roles: (_largest(_sharpened(roles, UNIFORM)), roles[BASE]), 0, 1),
            Bound(ABOVE, 'nats'),
            'largest multiplier - none over (0, L]',
            alone=True,
        ),
        (BASE, UNIFORM),
    ),
    Rule(
        'headscale_beats_uniform',
        'Mean loss over the last L/4 positions with HeadScale less that with the multiplier',
        Every(
            _less(_pair, -0.25),
            Bound(BELOW, 0, 'nats'),
            'HeadScale - uniform at the end',
            alone=True,
        ),
        (HEADSCALE, UNIFORM),
    ),
    Rule(
        'headscale_entropy',
        'Mean entropy over all positions beyond L with HeadScale less that with the multiplier',
        Every(
            _less(_pair, 1, mean=PositionCurve.mean_entropy),
            Bound(ABOVE, 0, 'bits'),
            'HeadScale - uniform beyond L',
            'bits',
            alone=True,
        ),
        (HEADSCALE, UNIFORM),
    ),
    Rule('ranges', 'Mean loss and entropy by range of positions.', _ranges),
    Rule(
        'headscale_hurts_less',
        'Mean loss over (0, L] with HeadScale less that with the multiplier',
        Every(
            _less(_pair, 0, 1),
            Bound(BELOW, 0, 'nats'),
            'HeadScale - uniform over (0, L]',
            alone=True,
        ),
        (HEADSCALE, UNIFORM),
    ),
)
