"""What a practitioner asks of an extended checkpoint, measured by range of positions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from experiments.figures.base import Claim
from experiments.figures.position_curve import THRESHOLD, PositionCurve

COST_NATS = 0.05


def from_curves(
    before: PositionCurve, after: PositionCurve, uniform: PositionCurve | None = None
) -> list[Claim]:
    """Windows reach beyond L; all curves were measured on the same ones."""
    drawn = {'before': before, 'uniform': uniform, 'after': after}
    curves = {role: curve for role, curve in drawn.items() if curve is not None}
    return [gain(curves), cost(curves), reach(curves)]


def gain(curves: dict[str, PositionCurve]) -> Claim:
    before = curves['before']
    length, end = before.train_length, int(before.positions[-1])
    spans = {_named(low, high, length): (low, high) for low, high in _spans(length, end)}
    beyond = _compared(curves, length, end)
    return Claim(
        None,
        '',
        {
            'loss_nats': {
                **{name: _compared(curves, *span) for name, span in spans.items()},
                f'all of {_named(length, end, length)}': beyond,
            }
        },
        beyond['after_minus_before'] < 0,
        'The mean loss over all positions beyond L, up to the end of the windows, is lower after '
        'than before.',
    )


def cost(curves: dict[str, PositionCurve]) -> Claim:
    inside = _compared(curves, 0, curves['before'].train_length)
    return Claim(
        None,
        '',
        {'loss_inside_L_nats': inside},
        inside['after_minus_before'] <= COST_NATS,
        f'The mean loss over (0, L] is after at most {COST_NATS} nats above before.',
    )


def reach(curves: dict[str, PositionCurve]) -> Claim:
    reads = {role: curve.loss_bend() for role, curve in curves.items()}
    before, after = reads['before'], reads['after']
    end = curves['before'].positions[-1] / curves['before'].train_length
    return Claim(
        None,
        '',
        {'reads_up_to_in_L': reads, 'measured_up_to_in_L': end},
        None if before is None else after is None or after > before,
        'Reads further after than before. A curve reads up to the first position beyond L/2 from '
        f'which its smoothed loss exceeds its own mean over [L/2, L] by {THRESHOLD} nats for L/8 '
        'positions; none within the positions measured counts as further.',
    )


def _compared(curves: dict[str, PositionCurve], low: float, high: float) -> dict[str, Any]:
    """Mean loss over (low, high] of each curve, and after minus before."""
    losses = {role: curve.mean_loss(low, high) for role, curve in curves.items()}
    return losses | {'after_minus_before': losses['after'] - losses['before']}


def _spans(length: int, end: int) -> list[tuple[int, int]]:
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
