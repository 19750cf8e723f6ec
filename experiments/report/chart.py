"""Line charts as numbers for a template: points, ticks, places of marks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

WIDTH, HEIGHT = 320, 170
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 8, 24

Place = Callable[[float], float]
Ticks = tuple[tuple[float, str], ...]


@dataclasses.dataclass(frozen=True)
class Chart:
    """lines: points of polylines. x_ticks, y_ticks: (place, label). marks: places along x."""

    lines: tuple[str, ...]
    x_ticks: Ticks
    y_ticks: Ticks
    marks: tuple[float, ...]


def of(
    x: Sequence[float], ys: Sequence[Sequence[float]], most: int, marks: Sequence[float] = ()
) -> Chart:
    """Lines through means of x and each of `ys` over up to `most` stretches. marks: values of x.
    ValueError for no points at which all are finite."""
    values = np.asarray([x, *ys], np.float64)
    values = values[:, np.all(np.isfinite(values), axis=0)]
    if not values.size:
        raise ValueError('no finite values to draw')
    parts = np.array_split(values, min(most, values.shape[1]), axis=1)
    xs, *lines = np.stack([part.mean(axis=1) for part in parts], axis=1)
    right = max([float(xs.max()), *marks])
    x_at, x_ticks = _axis(0.0, right, LEFT, WIDTH - RIGHT)
    low, high = float(np.min(lines)), float(np.max(lines))
    y_at, y_ticks = _axis(low, high, HEIGHT - BOTTOM, TOP)
    points = tuple(
        ' '.join(f'{x_at(a):.1f},{y_at(b):.1f}' for a, b in zip(xs, line, strict=True))
        for line in lines
    )
    return Chart(points, x_ticks, y_ticks, tuple(round(x_at(m), 1) for m in marks))


def _axis(low: float, high: float, start: float, end: float) -> tuple[Place, Ticks]:
    """The place of a value, and ticks at round values."""
    if high <= low:
        low, high = low - 0.5, high + 0.5
    power = 10.0 ** math.floor(math.log10((high - low) / 3))
    step = next(power * k for k in (1, 2, 5, 10) if (high - low) / (power * k) <= 5)

    def place(value: float) -> float:
        return start + (value - low) / (high - low) * (end - start)

    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    return place, tuple((round(place(v), 1), f'{v:,.6g}') for v in values)
