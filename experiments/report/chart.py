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
    """points: of a polyline. x_ticks, y_ticks: (place, label). marks: places along x."""

    points: str
    x_ticks: Ticks
    y_ticks: Ticks
    marks: tuple[float, ...]


def of(x: Sequence[float], y: Sequence[float], most: int, marks: Sequence[float] = ()) -> Chart:
    """A line through means of x and y over up to `most` stretches. marks: values of x. ValueError
    for no finite points."""
    xs, ys = np.asarray(x, np.float64), np.asarray(y, np.float64)
    finite = np.isfinite(xs) & np.isfinite(ys)
    xs, ys = xs[finite], ys[finite]
    if not len(xs):
        raise ValueError('no finite values to draw')
    parts = np.array_split(np.arange(len(xs)), min(most, len(xs)))
    xs, ys = (np.array([values[part].mean() for part in parts]) for values in (xs, ys))
    right = max([float(xs.max()), *marks])
    x_at, x_ticks = _axis(0.0, right, LEFT, WIDTH - RIGHT)
    y_at, y_ticks = _axis(float(ys.min()), float(ys.max()), HEIGHT - BOTTOM, TOP)
    points = ' '.join(f'{x_at(a):.1f},{y_at(b):.1f}' for a, b in zip(xs, ys, strict=True))
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
