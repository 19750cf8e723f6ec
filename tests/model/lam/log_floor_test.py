"""Lambda that rises by position in steps of the training length."""

from __future__ import annotations

import numpy as np

from nope.model.lam.log_floor import LogFloor
from tests.model.lam.multipliers import by_keys


def test_the_values_are_llama_4_s() -> None:
    found = by_keys(LogFloor(2048), LogFloor.published, [1, 2047, 2048, 4095, 4096, 8192, 16384])
    expected = [1, 1, 1.0693147, 1.0693147, 1.1098612, 1.1609438, 1.2197225]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
