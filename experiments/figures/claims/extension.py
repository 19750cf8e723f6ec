"""Readings of an extended checkpoint by range of positions, as a practitioner asks for them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.figures.claims.catalogue import CLAIMS
from experiments.figures.claims.decide import Measured, Rule
from experiments.figures.claims.headline import number
from experiments.figures.read.position_curve import THRESHOLD, PositionCurve

# 'before', 'after' and perhaps 'uniform', measured on the same windows, which reach beyond L.
Curves = Mapping[str, PositionCurve]
COSTS = CLAIMS['extension_costs'].thresholds['nats']
NOISE = CLAIMS['extension_reaches'].thresholds['noise_nats']


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
        f'{THRESHOLD} nats for L/8 positions; none within the positions '
        'measured counts as further. Undecided where the standard error of a smoothed loss exceeds '
        f'{NOISE} nats: more windows lower it.',
        _reaches,
    ),
)
