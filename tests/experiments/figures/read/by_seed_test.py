"""Records of one model by seed: several searches of it count as that model."""

from __future__ import annotations

import numpy as np

from experiments.figures import KINDS
from experiments.figures.given import FigureInput
from experiments.figures.read.by_seed import of_models
from nope.records import Records
from tests.experiments.figures import synthetic

ORDERS = 314, 1001


def searched(seed: int, order: int, accuracy: float) -> Records:
    found = synthetic.passkey_records(seed=seed, order=order)
    found['accuracy'][:] = accuracy
    return found


def test_models_are_the_means_of_their_records_in_the_order_of_their_seeds() -> None:
    records = [synthetic.passkey_records(seed=seed) for seed in (2, 0, 2, 0)]
    found = of_models(np.array([[1.0, 5], [2, 6], [3, 7], [4, 8]]), records)
    np.testing.assert_array_equal(found, [[2, 6], [3, 7]])


def test_an_interval_is_over_models_however_many_orders_each_was_searched_in() -> None:
    """The spread of three models is that of six searches that agree in pairs."""
    inside = {0: 0.9, 1: 0.6, 2: 0.7}

    def claim(orders: tuple[int, ...]):
        runs = {
            f'full/{order}/seed{seed}': searched(seed, order, share + 0.01 * (order > 500))
            for order in orders
            for seed, share in inside.items()
        }
        panels = ({'label': 'full', 'record': 'full/', 'paper': 81},)
        options = {'panels': panels, 'roles': {'nope': ['full']}}
        output = KINDS['passkey_maps'].draw(FigureInput('f', runs, options))
        assert {row['record'] for row in output.rows} == set(runs)
        return next(c for c in output.claims if c.id == 'passkey_inside')

    one, two = (claim(orders) for orders in (ORDERS[:1], ORDERS))
    (first,), (second,) = one.numbers, two.numbers
    assert len(first.by_seed) == len(second.by_seed) == 3
    widths = [n.interval.high - n.interval.low for n in (first, second)]
    np.testing.assert_allclose(*widths, rtol=1e-6)
    np.testing.assert_allclose(second.interval.mean - first.interval.mean, 0.5, rtol=1e-6)
