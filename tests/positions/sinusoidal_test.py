from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import Sinusoidal
from tests.positions import cases

T = 9
POSITIONS_BT = np.arange(T, dtype=np.int32)[None]


@pytest.mark.parametrize(('width', 'base'), [(8, 10_000.0), (768, 10_000.0), (6, 100.0)])
def test_sines_are_in_the_first_half_and_cosines_in_the_second(width: int, base: float) -> None:
    halves = np.asarray(Sinusoidal(base).vectors(jnp.asarray(POSITIONS_BT), width))[0]
    t, i = np.arange(T)[:, None], np.arange(width // 2)
    angles = t * base ** (-2 * i / width)
    np.testing.assert_allclose(halves[:, : width // 2], np.sin(angles), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(halves[:, width // 2 :], np.cos(angles), rtol=1e-5, atol=1e-6)


def test_position_zero_is_zeros_and_ones() -> None:
    vectors = Sinusoidal().vectors(jnp.zeros((1, 1), jnp.int32), 6)
    np.testing.assert_array_equal(vectors, [[[0, 0, 0, 1, 1, 1]]])


def test_an_odd_width_has_a_sine_more() -> None:
    odd = Sinusoidal().vectors(jnp.asarray(POSITIONS_BT), 7)
    assert odd.shape == (1, T, 7)
    assert np.all(np.isfinite(odd))


def test_vectors_are_added_to_the_embeddings_in_their_dtype() -> None:
    x_BTD = jnp.asarray(cases.normal(0, 2, T, 8))
    vectors = Sinusoidal().vectors(jnp.asarray(POSITIONS_BT), 8)
    found = Sinusoidal().embed(x_BTD, jnp.asarray(POSITIONS_BT), None)
    np.testing.assert_allclose(found, x_BTD + vectors, rtol=1e-6)
    half = Sinusoidal().embed(x_BTD.astype(jnp.bfloat16), jnp.asarray(POSITIONS_BT), None)
    assert half.dtype == jnp.bfloat16
