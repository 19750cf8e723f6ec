from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nope.positions import Learned, Table
from tests.positions import cases


def test_row_t_is_added_at_position_t() -> None:
    table = cases.normal(0, 10, 8)
    x_BTD = cases.normal(1, 2, 3, 8)
    positions_BT = np.array([[0, 1, 2], [9, 4, 4]], np.int32)
    found = Learned(10).embed(jnp.asarray(x_BTD), jnp.asarray(positions_BT), jnp.asarray(table))
    np.testing.assert_array_equal(found, x_BTD + table[positions_BT])


def test_a_position_without_a_row_is_not_another_ones() -> None:
    """A length that only the program knows cannot be refused: it shows in the values."""
    found = Learned(4).embed(jnp.ones((1, 1, 8)), jnp.asarray([[4]]), jnp.ones((4, 8)))
    assert np.all(np.isnan(found))


def test_its_table_has_a_row_for_every_position() -> None:
    assert Learned(10).table(8, 4) == Table((10, 8), ('positions', 'embed'), neutral=True)
    assert Learned(10).longest == 10 and Learned(10).embeds
