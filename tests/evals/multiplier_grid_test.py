from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from nope.evals import forward, multiplier_grid
from nope.evals.multiplier_grid import Grid
from nope.model.lam import LogLength
from nope.records import Records
from nope.variables import with_lam
from tests import tiny

T = 12
CONFIG = tiny.model(lam=LogLength(train_length=4))  # a grid is of uniform multipliers all the same
BLOCKS = tiny.tokens(6, T + 1)
GRID = Grid(0.5, 2.0, 0.25)


def compilations() -> int:
    return forward.batch_sums._cache_size()


@pytest.fixture(scope='module')
def measured() -> tuple[Records, int]:
    """The records, and how many programs were compiled for them."""
    before = compilations()
    found = multiplier_grid.run(
        CONFIG, tiny.variables(CONFIG), BLOCKS, GRID, train_length=4, mesh=tiny.mesh(), batch_size=4
    )
    return found, compilations() - before


def test_the_loss_under_a_multiplier_is_that_of_the_model_with_it(
    measured: tuple[Records, int],
) -> None:
    records, compiled = measured
    assert compiled == 1 and records['loss'].shape == (7, T)
    for index in (0, 2, 6):
        multiplier = records.along('multiplier', 7)[index]
        uniform = with_lam(tiny.variables(), jnp.full((2, 4), multiplier))
        means = forward.means(
            tiny.MODEL, uniform, BLOCKS, mesh=tiny.mesh(), batch_size=4, entropy=False
        )
        np.testing.assert_allclose(records['loss'][index], means.loss, rtol=1e-6)


def test_the_best_multiplier_is_the_one_of_lowest_loss(measured: tuple[Records, int]) -> None:
    records, _ = measured
    loss_MT, multipliers = records['loss'], GRID.multipliers()
    np.testing.assert_array_equal(records['mean_loss'], loss_MT.mean(axis=1))
    np.testing.assert_array_equal(records['best_loss'], loss_MT.min(axis=0))
    for position, best in enumerate(records['best_multiplier']):
        assert loss_MT[multipliers == best, position] == loss_MT[:, position].min()
    best_window = records.attributes['best_multiplier_window']
    assert loss_MT[multipliers == best_window].mean() == loss_MT.mean(axis=1).min()
    a, r2 = multiplier_grid.fit_log(np.arange(1, T + 1), records['best_multiplier'], 4)
    assert (records.attributes['fit_a'], records.attributes['fit_r2']) == (a, r2)


def test_grids_hold_both_ends_and_round_values() -> None:
    assert GRID.multipliers().tolist() == [0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    paper = Grid().multipliers()
    assert len(paper) == 111
    assert paper[[0, 10, 30, 110]].tolist() == [0.9, 1.0, 1.2, 2.0]
    assert Grid(1.2, 1.2, 0.1).multipliers().tolist() == [1.2]
    assert Grid(0.9, 2.0, 0.3).multipliers().tolist() == [0.9, 1.2, 1.5, 1.8]  # up to high


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'low': 0.0}, r'low is 0\.0; it must be finite and above 0'),
        ({'high': float('inf')}, r'high is inf'),
        ({'low': 1.5, 'high': 1.0}, r'high is 1\.0; it must be at least low, 1\.5'),
    ],
)
def test_a_multiplier_that_is_not_finite_or_not_positive_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Grid(**changes)


# The fit c(i) = 1 + a ln(i / L)


def test_the_fit_is_least_squares() -> None:
    draw = np.random.default_rng(0)
    positions = np.arange(64, 513)
    multipliers = 1.1 + 0.4 * np.log(positions / 64) + 0.1 * draw.normal(size=len(positions))
    a, r2 = multiplier_grid.fit_log(positions, multipliers, 64)
    x = np.log(positions / 64)
    (expected,), (residual,), *_ = np.linalg.lstsq(x[:, None], multipliers - 1)
    assert a == pytest.approx(expected, rel=1e-9)
    assert r2 == pytest.approx(
        1 - residual / np.sum((multipliers - multipliers.mean()) ** 2), rel=1e-9
    )


def test_where_there_is_nothing_to_fit_there_is_no_fit() -> None:
    positions = np.arange(1, 65)
    assert multiplier_grid.fit_log(positions, np.ones(64), 64) == (None, None)
    assert multiplier_grid.fit_log(positions, np.ones(64), 63) == (None, None)
    assert multiplier_grid.fit_log(positions, np.ones(64), 32) == (0.0, None)
