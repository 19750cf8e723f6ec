"""Lambda of Scalable-Softmax with a bias."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nope.model import lam
from nope.model.lam.scalable_softmax import ScalableSoftmax
from nope.model.lam.scalable_softmax_bias import ScalableSoftmaxBias

COEFFICIENTS = jnp.asarray([[[0.43, 0.2], [0.0, 1.3]], [[-0.1, 1.0], [0.3, 0.0]]], jnp.float32)
POSITIONS = jnp.arange(100, dtype=jnp.int32)


def test_it_is_a_line_in_the_logarithm_of_the_keys() -> None:
    found = ScalableSoftmaxBias().multipliers(COEFFICIENTS, 100, POSITIONS)
    line = np.stack([np.log(np.arange(1, 101)), np.ones(100)])
    expected = np.swapaxes(np.asarray(COEFFICIENTS, np.float64) @ line, 1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_without_its_bias_it_is_scalable_softmax() -> None:
    found = ScalableSoftmaxBias().multipliers(COEFFICIENTS.at[..., 1].set(0), 100, POSITIONS)
    plain = ScalableSoftmax().multipliers(COEFFICIENTS[..., 0], 100, POSITIONS)
    np.testing.assert_array_equal(found, plain)


def test_a_search_starts_from_the_base_model() -> None:
    initial = lam.initial(ScalableSoftmaxBias(), 2, 3)
    np.testing.assert_array_equal(initial, lam.uniform((0.0, 1.0), 2, 3, 2))
