"""Attention entropy of every head, mean over positions inside L and beyond it, and its ranks."""

from __future__ import annotations

import numpy as np

from experiments.figures.given import FigureInput
from experiments.figures.read import curves, position_curve
from nope.records import Records

# Ranges of positions in L, above the first and up to the second.
Range = tuple[float, float]
INSIDE: Range = (0.5, 1.0)
BEYOND: Range = (2.0, 4.0)
FEWEST = 3  # heads that ranks are compared of
TITLES = {INSIDE: '(L/2, L]', BEYOND: '(2 L, 4 L]'}


def check_length(given: FigureInput, records: Records) -> None:
    """ValueError where records end before the second range does."""
    length, needed = records.attributes['length'], BEYOND[1] * records.attributes['train_length']
    if length < needed:
        raise ValueError(
            f'figure {given.name!r}: measured up to position {length}; it draws means up to '
            f'{BEYOND[1]:g} L = {round(needed)}'
        )


def within(records: Records, part: Range) -> np.ndarray:
    """bool [T]: positions in a range."""
    low, high = (times * records.attributes['train_length'] for times in part)
    positions = position_curve.positions_of(records)
    return (positions > low) & (positions <= high)


def bits(records: Records, part: Range) -> np.ndarray:
    """[N_layers, H] mean over a range."""
    entropy = records['entropy'][..., within(records, part)]
    mean: np.ndarray = entropy.mean(axis=-1, dtype=np.float64) * curves.BITS_PER_NAT
    return mean


def bound(records: Records, part: Range) -> float:
    """Mean of log2(i) over a range."""
    positions = position_curve.positions_of(records)
    return float(np.log2(positions[within(records, part)]).mean())


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's, of two arrays without ties, of `FEWEST` numbers or more."""
    one, other = (np.argsort(np.argsort(values, axis=None)) for values in (first, second))
    return float(np.corrcoef(one, other)[0, 1])
