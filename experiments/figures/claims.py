"""What the paper says of entropy and loss against position, tested on measured curves.

Each function takes all curves of a figure and returns a claim, or None where these curves
cannot bear it. Positions are given in multiples of the training length L.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.figures.base import Claim
from experiments.figures.position_curve import SENSITIVITY, THRESHOLD, PositionCurve

NOPE, ROTARY = 'none', 'rotary'
NTK_PREFIX = 'rotary, dynamic NTK'

PARITY_NATS = 0.05
HARM_NATS = 0.01
# Two bends agree within a factor of 1.25, and one lies further out beyond a factor of 1.05.
AGREEMENT = 1.25
OUTWARD = 1.05
# The extended rotary model is claimed to show no bend up to 2 L, the length the paper draws.
NTK_REACH = 2
PAPER_ONSETS = {NOPE: 1.2, ROTARY: 1.1}


def from_curves(curves: Sequence[PositionCurve]) -> list[Claim]:
    """Every claim that `curves` can bear, in the order of their numbers."""
    tests = (parity, onset, bends_meet, bends_move, short_positions, headscale, headscale_entropy)
    found = [test(curves) for test in tests]
    return [claim for claim in found if claim is not None] + [ranges(curves)]


def parity(curves: Sequence[PositionCurve]) -> Claim | None:
    nope, rotary = _base(curves, NOPE), _base(curves, ROTARY)
    if nope is None or rotary is None:
        return None
    half, length = nope.train_length / 2, nope.train_length
    losses = {c.name: c.mean_loss(half, length) for c in (nope, rotary)}
    difference = losses[nope.name] - losses[rotary.name]
    return Claim(
        1,
        'In-domain parity of NoPE and RoPE: PG19 at 2K 14.6 against 14.5, a difference of 0.007 '
        'nats.',
        {'loss_nats': losses, 'nope_minus_rope_nats': difference},
        abs(difference) <= PARITY_NATS,
        f'Mean loss over (L/2, L] of NoPE and RoPE differs by at most {PARITY_NATS} nats.',
    )


def onset(curves: Sequence[PositionCurve]) -> Claim | None:
    bases = [c for c in (_base(curves, NOPE), _base(curves, ROTARY)) if c is not None]
    if not bases:
        return None
    measured = {
        c.name: {
            'paper': PAPER_ONSETS[c.encoding],
            'onset': {str(t): c.loss_bend(t) for t in SENSITIVITY},
            'first_crossing': {str(t): c.loss_bend(t, sustained=False) for t in SENSITIVITY},
            'noise_nats': c.noise(),
        }
        for c in bases
    }
    onsets = {c.encoding: _or_inf(c.loss_bend()) for c in bases}
    beyond = all(1 <= o < math.inf for o in onsets.values())
    later = onsets[NOPE] > onsets[ROTARY] if len(onsets) == 2 else True
    order = ', and that of NoPE later than that of RoPE' if len(onsets) == 2 else ''
    return Claim(
        2,
        'Loss of NoPE starts to rise at about 1.2 L, that of RoPE at about 1.1 L.',
        measured,
        beyond and later,
        'The loss starts to rise at L or later but within the positions measured'
        f'{order}; in multiples of L. The onset is the first position beyond L/2 from which the '
        f'smoothed loss exceeds its mean over [L/2, L] by {THRESHOLD} nats for L/8 positions; '
        'first_crossing asks for a single position.',
    )


def bends_meet(curves: Sequence[PositionCurve]) -> Claim | None:
    bases = [c for c in (_base(curves, NOPE), _base(curves, ROTARY)) if c is not None]
    extended = [c for c in curves if c.encoding.startswith(NTK_PREFIX) and c.unscaled]
    if not bases and not extended:
        return None
    measured: dict[str, Any] = {}
    holds = True
    for c in bases:
        loss, entropy = c.loss_bend(), c.entropy_bend()
        ratio = entropy / loss if entropy is not None and loss is not None else None
        measured[c.name] = {**_bends(c), 'entropy_bend_over_loss_bend': ratio}
        holds &= ratio is not None and 1 / AGREEMENT <= ratio <= AGREEMENT
    for c in extended:
        measured[c.name] = _bends(c)
        holds &= min(_or_inf(c.loss_bend()), _or_inf(c.entropy_bend())) > NTK_REACH
    parts = [f'the two bends lie within a factor of {AGREEMENT}'] if bases else []
    parts += [f'RoPE-NTK shows neither bend up to {NTK_REACH} L'] if extended else []
    return Claim(
        3,
        'The entropy curve bends at the position where the loss bends (NoPE, RoPE); RoPE-NTK '
        'shows neither bend.',
        measured,
        holds,
        f'In multiples of L, {" and ".join(parts)}. Entropy bend: from where the mean entropy '
        'exceeds the line fitted to it against ln i on [L/4, L] (its R^2 is given) by '
        f'{THRESHOLD} bits for L/8 positions. Loss bend: the onset of claim 2.',
    )


def bends_move(curves: Sequence[PositionCurve]) -> Claim | None:
    measured: dict[str, Any] = {}
    parts = []
    holds = True
    for encoding, name in ((NOPE, 'NoPE'), (ROTARY, 'RoPE')):
        base = _base(curves, encoding)
        scaled = [c for c in curves if c.encoding == encoding and c.scaled_up]
        if base is None or not scaled:
            continue
        moved = {c.name: _outward(base, c) for c in scaled}
        measured[base.name] = _bends(base)
        measured |= {c.name: {**_bends(c), 'both_moved_outward': moved[c.name]} for c in scaled}
        holds &= all(moved.values()) if encoding == NOPE else not any(moved.values())
        parts.append(f'{name}: {"every" if encoding == NOPE else "no"} scale above 1 does')
    if not parts:
        return None
    return Claim(
        4,
        'A uniform scale above 1 moves both bends outward for NoPE, not for RoPE.',
        measured,
        holds,
        f'Moves both bends outward by a factor above {OUTWARD}: {"; ".join(parts)}. Bends as in '
        'claims 2 and 3, each curve against its own values inside L; none within the positions '
        'measured counts as further out.',
    )


def short_positions(curves: Sequence[PositionCurve]) -> Claim | None:
    base = _base(curves, NOPE)
    scaled = [c for c in curves if c.encoding == NOPE and c.scaled_up]
    if base is None or not scaled:
        return None
    inside = base.mean_loss(0, base.train_length)
    changes = {c.name: c.mean_loss(0, c.train_length) - inside for c in scaled}
    largest = max(scaled, key=lambda c: c.scale_value or 0)
    return harm(changes, [changes[largest.name]])


def harm(measured: Mapping[str, Any], largest: Sequence[float]) -> Claim:
    """Claim 6. measured: change of the mean loss over (0, L], nats, by scale. largest: the
    change at the largest scale, one value for each model."""
    return Claim(
        6,
        'A large uniform scale hurts short positions: PG19 at 2K from 14.6 to 15.0, 19.0 and 30.4 '
        'for 1.2, 1.5 and 1.8, that is 0.03, 0.26 and 0.73 nats.',
        {'change_inside_L_nats': measured},
        all(change > HARM_NATS for change in largest),
        f'The largest scale raises the mean loss over (0, L] by more than {HARM_NATS} nats.',
    )


def headscale(curves: Sequence[PositionCurve]) -> Claim | None:
    pair = _pair(curves)
    if pair is None:
        return None
    heads, uniform = pair
    length, end = heads.train_length, int(heads.positions[-1])
    marks = sorted({m for m in (length, 2 * length, 4 * length, end) if m <= end})
    width = length / 4
    at = {
        f'{m / length:g} L': heads.mean_loss(m - width, m) - uniform.mean_loss(m - width, m)
        for m in marks
    }
    inside = heads.mean_loss(0, length) - uniform.mean_loss(0, length)
    last = at[f'{end / length:g} L']
    return Claim(
        7,
        'HeadScale beats the uniform scale at its target length and hurts short positions less: '
        'lower by 0.2 nats at 2 L and 0.8 nats at 4 L in Figure 4.',
        {
            'headscale_minus_uniform_nats': {**at, 'mean over (0, L]': inside},
            'mean_to_end_nats': heads.mean_loss(0, end) - uniform.mean_loss(0, end),
            'labels': [heads.name, uniform.name],
        },
        last < 0 and inside < 0,
        'HeadScale has the lower loss at the last position and over (0, L]. A value at x is the '
        'mean over the L/4 positions up to x.',
    )


def headscale_entropy(curves: Sequence[PositionCurve]) -> Claim | None:
    pair = _pair(curves)
    if pair is None or pair[0].positions[-1] <= pair[0].train_length:
        return None
    span = (pair[0].train_length, int(pair[0].positions[-1]))
    entropies = {c.name: c.mean_entropy(*span) for c in pair}
    difference = entropies[pair[0].name] - entropies[pair[1].name]
    return Claim(
        None,
        'The mean entropy of HeadScale is higher than that of the uniform scale (Figure 4).',
        {'entropy_bits': entropies, 'headscale_minus_uniform_bits': difference},
        difference > 0,
        'Mean entropy over all positions beyond L is higher with HeadScale.',
    )


def ranges(curves: Sequence[PositionCurve]) -> Claim:
    """Loss and entropy by range of positions: a reading, nothing to decide."""
    measured = {}
    for c in curves:
        length, end = c.train_length, int(c.positions[-1])
        spans = {'(0, L]': (0, 1), '(L/2, L]': (0.5, 1), '(L, 2L]': (1, 2), '(2L, 4L]': (2, 4)}
        spans = {k: (a * length, b * length) for k, (a, b) in spans.items() if b * length <= end}
        spans['all'] = (0, end)
        measured[c.name] = {
            'loss_nats': {k: c.mean_loss(*s) for k, s in spans.items()},
            'entropy_bits': {k: c.mean_entropy(*s) for k, s in spans.items()},
        }
    return Claim(None, '', measured, None, 'Mean loss and entropy by range of positions.')


def _base(curves: Sequence[PositionCurve], encoding: str) -> PositionCurve | None:
    return next((c for c in curves if c.encoding == encoding and c.unscaled), None)


def _pair(curves: Sequence[PositionCurve]) -> tuple[PositionCurve, PositionCurve] | None:
    """HeadScale and the uniform scale it is compared with, for NoPE."""
    heads = next((c for c in curves if c.encoding == NOPE and c.is_headscale), None)
    uniform = next((c for c in curves if c.encoding == NOPE and c.scaled_up), None)
    return None if heads is None or uniform is None else (heads, uniform)


def _bends(curve: PositionCurve) -> dict[str, Any]:
    return {
        'loss_bend': {str(t): curve.loss_bend(t) for t in SENSITIVITY},
        'entropy_bend': {str(t): curve.entropy_bend(t) for t in SENSITIVITY},
        'entropy_line_r2': curve.line_r2(),
    }


def _outward(base: PositionCurve, scaled: PositionCurve) -> bool:
    """Both bends of `base` are there, and both of `scaled` lie further out."""
    pairs = (
        (base.loss_bend(), scaled.loss_bend()),
        (base.entropy_bend(), scaled.entropy_bend()),
    )
    return all(b is not None and _or_inf(s) > OUTWARD * b for b, s in pairs)


def _or_inf(position: float | None) -> float:
    return math.inf if position is None else position
