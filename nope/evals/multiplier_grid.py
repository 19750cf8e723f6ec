"""UniformScale: grid search of one multiplier for all heads, and its fit against position."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from jax.sharding import Mesh

from nope.evals.forward import Progress, means
from nope.model import ModelConfig
from nope.model.lam import Constant
from nope.records import Measure, Records
from nope.runtime.errors import FieldError
from nope.variables import Variables, with_uniform_lam


@dataclasses.dataclass(frozen=True)
class Grid:
    """Multipliers of the softmax scale: low, low + increment, ... up to high."""

    low: float = 0.9
    high: float = 2.0
    increment: float = 0.01

    def __post_init__(self) -> None:
        for name in ('low', 'high', 'increment'):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise FieldError(name, value, 'it must be finite and above 0')
        if self.high < self.low:
            raise FieldError('high', self.high, f'it must be at least low, {self.low}')

    def multipliers(self) -> np.ndarray:
        count = math.floor((self.high - self.low) / self.increment + 1e-9) + 1
        return np.round(self.low + self.increment * np.arange(count), 10)


def run(
    config: ModelConfig,
    variables: Variables,
    blocks: np.ndarray,
    grid: Grid,
    *,
    train_length: int,
    mesh: Mesh,
    batch_size: int,
    progress: Progress = iter,
) -> Records:
    """Mean loss by position under every multiplier of the grid; one compilation for all of them.

    Measures: `loss` [multiplier, position], `mean_loss` [multiplier] over the window,
    `best_multiplier` and `best_loss` [position] from the unsmoothed means. Attributes:
    `best_multiplier_window`, and `fit_a` and `fit_r2` of c(i) = 1 + a ln(i / train_length) beyond
    the training length. They are None if the window ends within it.
    """
    multipliers = grid.multipliers()
    config = dataclasses.replace(config, lam=Constant())
    rows = []
    for multiplier in progress(multipliers):
        found = means(
            config,
            with_uniform_lam(variables, multiplier),
            blocks,
            mesh=mesh,
            batch_size=batch_size,
            entropy=False,
        )
        rows.append(found.loss)
    loss_MT = np.stack(rows)
    length = loss_MT.shape[1]
    best_T = np.argmin(loss_MT, axis=0)
    a, r2 = fit_log(np.arange(1, length + 1), multipliers[best_T], train_length)
    return Records(
        attributes={
            'evaluation': 'multiplier_grid',
            'length': length,
            'windows': len(blocks),
            'n_layers': config.attention_layers,
            'n_heads': config.heads,
            'best_multiplier_window': float(multipliers[np.argmin(loss_MT.mean(axis=1))]),
            'fit_a': a,
            'fit_r2': r2,
        },
        measures={
            'loss': Measure(loss_MT, ('multiplier', 'position'), 'nats'),
            'mean_loss': Measure(loss_MT.mean(axis=1), ('multiplier',), 'nats'),
            'best_multiplier': Measure(multipliers[best_T], ('position',), 'softmax scale'),
            'best_loss': Measure(loss_MT.min(axis=0), ('position',), 'nats'),
        },
        coordinates={'multiplier': multipliers, 'position': np.arange(1, length + 1)},
    )


def fit_log(
    positions: np.ndarray, multipliers: np.ndarray, train_length: int
) -> tuple[float | None, float | None]:
    """Least squares of c(i) = 1 + a ln(i / train_length) over i >= train_length: (a, R^2).

    The slope is a = sum x (y - 1) / sum x^2 with x = ln(i / train_length), and R^2 is about the
    mean of y (arXiv 2404.12224, appendix B). (None, None) with fewer than two positions beyond the
    training length; R^2 is None where y does not vary.
    """
    beyond = positions >= train_length
    x, y = np.log(positions[beyond] / train_length), multipliers[beyond]
    if np.count_nonzero(x) < 2:
        return None, None
    a = float(np.sum(x * (y - 1)) / np.sum(x**2))
    spread = np.sum((y - y.mean()) ** 2)
    r2 = float(1 - np.sum((y - 1 - a * x) ** 2) / spread) if spread > 0 else None
    return a, r2
