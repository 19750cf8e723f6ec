"""Attention entropy of every head: a grid at each length, and packed curves to look into it."""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.report.problems import Problem, noted
from experiments.report.workfolder import Recording, WorkFolder, relative

AXES = ('layer', 'head', 'position')
MOST_POINTS = 64  # of a curve
MOST_HEADS = 5000  # of a work folder, a curve each
QUANTUM = 1e-3  # nats: curves are 16-bit multiples of it
SHADES = 10  # of cells, numbered 0 to SHADES


@dataclasses.dataclass(frozen=True)
class HeadGrid:
    """Entropy of all heads in one evaluation, in nats.

    - means: [length][layer][head], each the mean over the positions in (length / 2, length].
    - curves: base64 of little-endian uint16 [layer, head, point] in QUANTUM.
    - multipliers: [layer][head], empty where they were not recorded.
    - others: names of grids of the same model with other multipliers.
    """

    names: tuple[str, ...]
    slug: str
    facts: tuple[Any, ...]
    scaled: bool
    train_length: int
    lengths: tuple[int, ...]
    means: tuple[tuple[tuple[float, ...], ...], ...]
    positions: tuple[int, ...]
    curves: str
    multipliers: tuple[tuple[float, ...], ...]
    others: tuple[str, ...] = ()

    @property
    def compared(self) -> Any:
        return self.lengths, self.means, self.positions, self.curves, self.multipliers

    @property
    def longest(self) -> list[list[tuple[str, int]]]:
        """Text and shade of every head at the longest length."""
        return shaded(self.means[-1])

    @property
    def data(self) -> dict[str, Any]:
        """Entropies and multipliers of a grid as JSON for the page's script."""
        return {
            'name': self.names[0],
            'L': self.train_length,
            'lengths': self.lengths,
            'means': self.means,
            'positions': self.positions,
            'curves': self.curves,
            'quantum': QUANTUM,
            'multipliers': self.multipliers,
            'others': self.others,
        }


def grids(folder: WorkFolder) -> list[HeadGrid]:
    """Grids of all records with entropy by layer, head and position, of MOST_HEADS together."""
    found: list[HeadGrid] = []
    left = MOST_HEADS
    for recording in folder.recordings:
        entropy = recording.records.measures.get('entropy')
        if entropy is None or entropy.axes != AXES:
            continue
        where = relative(recording.folder, folder.root)
        with noted(folder.problems, where):
            grid = _grid(recording)
            heads = sum(map(len, grid.means[-1]))
            if heads <= left:
                left -= heads
                found.append(grid)
            else:
                what = 'its heads are not shown: the page has no room for them'
                folder.problems.append(Problem('left out', where, what))
    return [dataclasses.replace(grid, others=_others(grid, found)) for grid in found]


def shaded(means: Sequence[Sequence[float]]) -> list[list[tuple[str, int]]]:
    highest = max((value for row in means for value in row), default=0.0) or 1.0
    return [[(f'{v:.2f}', round(SHADES * max(v, 0) / highest)) for v in row] for row in means]


def _grid(recording: Recording) -> HeadGrid:
    entropy_NHT = np.asarray(recording.records['entropy'], np.float64)
    facts = recording.records.attributes
    train_length = int(facts['train_length'])
    layers, heads, length = entropy_NHT.shape
    if min(layers, heads, length, train_length) < 1 or not np.isfinite(entropy_NHT).all():
        raise ValueError(f'entropy of shape {entropy_NHT.shape} is empty, or not finite')
    position_T = recording.records.along('position', length).astype(np.int64)
    if position_T.shape != (length,) or position_T[0] < 1 or (np.diff(position_T) <= 0).any():
        raise ValueError('the positions of its entropy do not rise from 1 on')
    chosen = _spread(length, MOST_POINTS, int(np.searchsorted(position_T, train_length)))
    steps = np.clip(np.round(entropy_NHT[..., chosen] / QUANTUM), 0, 65535).astype('<u2')
    lengths = _lengths(train_length, int(position_T[-1]))
    multipliers = _multipliers(recording, layers, heads)
    return HeadGrid(
        names=recording.names,
        slug=recording.slug,
        facts=(str(facts.get('model')), facts.get('seed'), train_length, layers, heads),
        scaled=any(value != 1 for row in multipliers for value in row),
        train_length=train_length,
        lengths=lengths,
        means=tuple(_means(entropy_NHT, position_T, n) for n in lengths),
        positions=tuple(position_T[chosen].tolist()),
        curves=base64.b64encode(steps.tobytes()).decode(),
        multipliers=multipliers,
    )


def _spread(length: int, points: int, always: int) -> np.ndarray:
    """Indices of at most `points` positions, evenly on a logarithmic axis, with the last and
    `always` among them."""
    even = np.unique(np.round(np.geomspace(1, length, max(points - 1, 2))).astype(int) - 1)
    return np.unique([*even, length - 1, min(always, length - 1)])


def _lengths(train_length: int, longest: int) -> tuple[int, ...]:
    """L and its doublings up to `longest`, and `longest`."""
    doublings = range(max(0, int(math.log2(longest / train_length))) + 1)
    found = {train_length << k for k in doublings} | {longest}
    return tuple(sorted(n for n in found if n <= longest))


def _means(
    entropy_NHT: np.ndarray, position_T: np.ndarray, n: int
) -> tuple[tuple[float, ...], ...]:
    within = (position_T > n / 2) & (position_T <= n)
    if not within.any():
        raise ValueError(f'no position between {n / 2:g} and {n} has an entropy')
    means = entropy_NHT[..., within].mean(axis=-1)
    return tuple(tuple(round(float(value), 2) for value in row) for row in means)


def _multipliers(recording: Recording, layers: int, heads: int) -> tuple[tuple[float, ...], ...]:
    measure = recording.records.measures.get('multiplier')
    if measure is None or measure.axes != AXES[:2] or measure.values.shape != (layers, heads):
        return ()
    if not np.isfinite(measure.values).all():
        raise ValueError('its multipliers are not finite')
    return tuple(tuple(round(float(value), 3) for value in row) for row in measure.values)


def _others(grid: HeadGrid, found: Sequence[HeadGrid]) -> tuple[str, ...]:
    """Of one as trained those that are scaled, and the other way round."""
    same = [other for other in found if other.facts == grid.facts and other is not grid]
    return tuple(other.slug for other in same if other.scaled != grid.scaled)
