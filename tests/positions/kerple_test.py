from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from nope.attention.bias import as_array
from nope.positions import Kerple


def test_the_bias_is_that_of_the_logarithmic_kernel() -> None:
    T, r1, r2 = 9, np.array([2.0, 0.3]), np.array([0.5, 0.01])
    bias = Kerple().bias(2, jnp.log(jnp.asarray([r1, r2])))
    distance = np.abs(np.arange(T)[:, None] - np.arange(T))
    expected = -r1[:, None, None] * np.log(1 + r2[:, None, None] * distance)
    np.testing.assert_allclose(as_array(bias, T, T, None), expected, rtol=1e-5)


def test_both_numbers_are_drawn_as_the_authors_do() -> None:
    """r1 from U(0, 2), r2 from U(0, 1), and never below 0.01."""
    table = Kerple().table(8, 4000)
    assert table.shape == (2, 4000) and table.draw is not None
    drawn_2N = np.exp(table.draw(jax.random.key(0), table.shape, jnp.float32))
    np.testing.assert_allclose(drawn_2N.mean(axis=1), [1.0, 0.5], rtol=0.05)
    np.testing.assert_allclose(drawn_2N.max(axis=1), [2.0, 1.0], rtol=0.01)
    np.testing.assert_allclose(drawn_2N.min(axis=1), 0.01, rtol=1e-5)
