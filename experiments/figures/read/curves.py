"""Arithmetic on curves along the position: smoothing, ranges, where a curve bends.

All arrays are float64 [T]; positions count the tokens seen, 1..T.
"""

from __future__ import annotations

import math

import numpy as np

BITS_PER_NAT = 1 / math.log(2)

# The paper smooths with half-width 50 at a training length of 2,048.
PAPER_HALF_WIDTH = 50
PAPER_TRAIN_LENGTH = 2048


def half_width(train_length: int) -> int:
    """Half-width of the moving average: the same share of the training length as the paper's."""
    return max(1, round(PAPER_HALF_WIDTH * train_length / PAPER_TRAIN_LENGTH))


def smooth(values: np.ndarray, half: int) -> np.ndarray:
    """Centred moving average, y_k = mean(x[max(0, k - half) : min(T, k + half + 1)])."""
    size = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    index = np.arange(size)
    low, high = np.maximum(index - half, 0), np.minimum(index + half + 1, size)
    return (sums[high] - sums[low]) / (high - low)


def mean_between(values: np.ndarray, positions: np.ndarray, low: float, high: float) -> float:
    """Mean over low < i <= high; ValueError where no position lies there."""
    inside = (positions > low) & (positions <= high)
    if not inside.any():
        raise ValueError(f'no position in ({low}, {high}]; positions end at {positions[-1]}')
    return float(values[inside].mean())


def first_above(
    excess: np.ndarray, positions: np.ndarray, threshold: float, start: float, hold: int = 1
) -> int | None:
    """First position i > start at which `excess` is above `threshold` and stays there for
    `hold` positions (i included), None where there is none."""
    above = (excess > threshold) & (positions > start)
    # Sums of `hold` successive flags: a run is whole where the sum is `hold`.
    counts = np.concatenate([[0], np.cumsum(above)])
    runs = counts[hold:] - counts[:-hold]
    found = np.flatnonzero(runs == hold)
    return int(positions[found[0]]) if found.size else None


def loss_excess(smoothed: np.ndarray, positions: np.ndarray, train_length: int) -> np.ndarray:
    """Smoothed loss above its own mean over [L/2, L], in nats."""
    inside = (positions >= train_length / 2) & (positions <= train_length)
    return smoothed - smoothed[inside].mean()


def entropy_excess(
    entropy: np.ndarray, positions: np.ndarray, train_length: int
) -> tuple[np.ndarray, float]:
    """Entropy above the line fitted to it against ln i on [L/4, L], and the line's R^2 there. The
    line is level where one position lies there, as for L = 1."""
    inside = (positions >= train_length / 4) & (positions <= train_length)
    x = np.log(positions)
    degree = min(1, int(np.count_nonzero(inside)) - 1)
    *slopes, intercept = np.polyfit(x[inside], entropy[inside], degree)
    slope = slopes[0] if slopes else 0.0
    excess = entropy - (slope * x + intercept)
    spread = np.square(entropy[inside] - entropy[inside].mean()).sum()
    r2 = 1 - np.square(excess[inside]).sum() / spread if spread > 0 else 1.0
    return excess, float(r2)


def correlation(x: np.ndarray, y: np.ndarray) -> float | None:
    """Pearson's r; None where one of the two does not vary or there are fewer than 3 points."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def thin(size: int, points: int) -> np.ndarray:
    """Indices of every (size / points)-th of `size` positions, counted so that the last is one."""
    step = max(1, size // points)
    return np.arange(size - 1, -1, -step)[::-1]
