"""Lambda that rises by position in steps of the training length."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from nope.model.lam.log_floor import LogFloor
from nope.positions.tempered import TemperedNoPE
from tests.model.lam.multipliers import by_keys


def test_the_values_are_llama_4_s() -> None:
    found = by_keys(LogFloor(2048), LogFloor.published, [1, 2047, 2048, 4095, 4096, 8192, 16384])
    expected = [1, 1, 1.0693147, 1.0693147, 1.1098612, 1.1609438, 1.2197225]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_it_is_the_encoding_with_a_temperature() -> None:
    keys = list(range(1, 40))
    encoding = TemperedNoPE(rate=0.3, span=8)
    expected = encoding.multipliers(jnp.asarray(keys, jnp.int32)[None] - 1)[0]
    np.testing.assert_allclose(by_keys(LogFloor(8), 0.3, keys), expected, rtol=1e-6)
