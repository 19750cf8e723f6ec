"""Entropy and loss of one model under one lambda against position, read from its records."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.figures.read import curves
from experiments.figures.read.pooled import BY_SEED
from nope.records import Records

# Thresholds of a bend: nats for the loss, bits for the entropy. The middle one decides, the
# others say how much depends on it.
THRESHOLD = 0.1
SENSITIVITY = (0.05, 0.1, 0.2)


@dataclasses.dataclass(frozen=True)
class PositionCurve:
    """Arrays are float64 [T], T >= L; positions are 1..T.

    - name: unique in a figure. multiplier: the one for all heads, None where each has its own.
    - entropy_bits: mean over layers and heads. loss, loss_std: nats, loss_std over `windows`.
    - smoothed: `loss` under the moving average of `half` positions to each side.
    - loss_ST, entropy_bits_ST: of every seed, beside means over several.
    """

    name: str
    multiplier: float | None
    train_length: int
    windows: int
    positions: np.ndarray
    entropy_bits: np.ndarray
    loss: np.ndarray
    loss_std: np.ndarray
    half: int
    loss_ST: np.ndarray | None = None
    entropy_bits_ST: np.ndarray | None = None

    @functools.cached_property
    def smoothed(self) -> np.ndarray:
        return curves.smooth(self.loss, self.half)

    def spreads(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Lowest and highest seed by position, [2, T] each: of the entropy in bits, and of the
        smoothed loss. None for one seed."""
        if self.loss_ST is None or self.entropy_bits_ST is None:
            return None
        smoothed_ST = np.stack([curves.smooth(loss, self.half) for loss in self.loss_ST])
        ends = [
            np.stack([x.min(axis=0), x.max(axis=0)]) for x in (self.entropy_bits_ST, smoothed_ST)
        ]
        return ends[0], ends[1]

    @property
    def sharpened(self) -> bool:
        """One multiplier above 1 for all heads."""
        return self.multiplier is not None and self.multiplier > 1

    @property
    def hold(self) -> int:
        """Positions for which a curve must stay above a threshold for a bend: L / 8."""
        return max(1, self.train_length // 8)

    @property
    def excess(self) -> np.ndarray:
        """The smoothed loss less its mean over [L/2, L]."""
        return curves.loss_excess(self.smoothed, self.positions, self.train_length)

    def loss_bend(
        self,
        threshold: float = THRESHOLD,
        *,
        sustained: bool = True,
        beside: PositionCurve | None = None,
    ) -> float | None:
        """First position beyond L/2, in multiples of L, with an excess loss above `threshold` nats.
        Sustained bends stay above it for the next L/8 positions too.
        Beside a curve of the same windows, its own excess is taken off: hard text is in both."""
        excess = self.excess
        if beside is not None:
            common = min(len(excess), len(beside.positions))
            excess = excess[:common] - beside.excess[:common]
        return self._bend(excess, threshold, self.hold if sustained else 1)

    def entropy_bend(self, threshold: float = THRESHOLD) -> float | None:
        """First position beyond L/2, in multiples of L, with `threshold` bits of excess entropy for
        L/8 positions. The excess is above the line fitted against ln i on [L/4, L]."""
        excess, _ = curves.entropy_excess(self.entropy_bits, self.positions, self.train_length)
        return self._bend(excess, threshold, self.hold)

    def line_r2(self) -> float:
        """R^2, on [L/4, L], of the line that `entropy_bend` compares with."""
        return curves.entropy_excess(self.entropy_bits, self.positions, self.train_length)[1]

    def noise(self) -> float:
        """Standard error of the smoothed loss inside L, were positions independent, in nats."""
        inside = self.positions <= self.train_length
        variance = np.square(self.loss_std[inside]).mean() / self.windows
        return float(np.sqrt(variance / (2 * self.half + 1)))

    def mean_loss(self, low: float, high: float) -> float:
        """Mean over low < i <= high, unsmoothed, in nats."""
        return curves.mean_between(self.loss, self.positions, low, high)

    def mean_entropy(self, low: float, high: float) -> float:
        """Mean over low < i <= high, in bits."""
        return curves.mean_between(self.entropy_bits, self.positions, low, high)

    def _bend(self, excess: np.ndarray, threshold: float, hold: int) -> float | None:
        start = self.train_length / 2
        positions = self.positions[: len(excess)]
        found = curves.first_above(excess, positions, threshold, start, hold)
        return None if found is None else found / self.train_length


def positions_of(records: Records) -> np.ndarray:
    """Positions 1..T of a 'positions' or 'multiplier_grid' evaluation; ValueError for others, since
    smoothing and bends need every position."""
    size = int(records['loss'].shape[-1])
    positions = records.along('position', size)
    if not np.array_equal(positions, np.arange(1, size + 1)):
        raise ValueError(f'positions must be 1..{size}, got {positions[:3]}..{positions[-1]}')
    return positions


def read(name: str, records: Records) -> PositionCurve:
    """`records`: evaluation 'positions'. ValueError where it is shorter than L."""
    facts = records.attributes
    positions = positions_of(records)
    train_length = int(facts['train_length'])
    if len(positions) < train_length:
        raise ValueError(
            f'{name!r}: measured up to position {len(positions)}, which is shorter than the '
            f'training length {train_length}'
        )
    multiplier = facts['multiplier']
    loss_ST, entropy_ST = (
        records[name + BY_SEED].astype(np.float64) if name + BY_SEED in records.measures else None
        for name in ('loss', 'entropy')
    )
    return PositionCurve(
        name=name,
        multiplier=None if multiplier is None else float(multiplier),
        train_length=train_length,
        windows=int(facts['windows']),
        positions=positions,
        entropy_bits=records['entropy'].mean(axis=(0, 1), dtype=np.float64) * curves.BITS_PER_NAT,
        loss=records['loss'].astype(np.float64),
        loss_std=records['loss_std'].astype(np.float64),
        half=curves.half_width(train_length),
        loss_ST=loss_ST,
        entropy_bits_ST=None if entropy_ST is None else entropy_ST * curves.BITS_PER_NAT,
    )


def loss_limits(data: Sequence[PositionCurve]) -> tuple[float, float]:
    """Limits of an axis for the smoothed losses of `data`, of all seeds."""
    # The first few positions have seen next to nothing: their loss would set the scale.
    shown = [
        (d.smoothed if (ends := d.spreads()) is None else ends[1])[..., d.train_length // 16 :]
        for d in data
    ]
    low, high = min(float(s.min()) for s in shown), max(float(s.max()) for s in shown)
    margin = 0.05 * max(high - low, 0.1)
    return low - margin, high + margin


def entropy_limits(data: Sequence[PositionCurve]) -> tuple[float, float]:
    """Limits of an axis for the entropies of `data`, in bits, and for the bound near them."""
    entropy = max(float(d.entropy_bits.max()) for d in data)
    ceiling = float(np.log2(len(data[0].positions)))
    return 0, min(1.03 * ceiling, 1.4 * entropy) if ceiling > 0 else 1


def rows(curve: PositionCurve) -> list[dict[str, Any]]:
    """The numbers of a curve, one row a position."""
    columns = (curve.positions, curve.entropy_bits, curve.loss, curve.smoothed, curve.loss_std)
    return [
        {
            'position': position,
            'entropy_bits': entropy,
            'loss_nats': loss,
            'loss_smoothed_nats': smoothed,
            'loss_std_nats': std,
            'bound_bits': float(np.log2(position)),
        }
        for position, entropy, loss, smoothed, std in zip(
            *(c.tolist() for c in columns), strict=True
        )
    ]
