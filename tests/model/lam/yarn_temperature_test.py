"""Lambda of YaRN."""

from __future__ import annotations

import numpy as np

from nope.model.lam.yarn_temperature import YarnTemperature
from tests.model.lam.multipliers import by_length


def test_the_values_are_yarn_s() -> None:
    found = by_length(
        YarnTemperature(2048), YarnTemperature.published, [1024, 2048, 4096, 8192, 16384]
    )
    expected = (1 + 0.1 * np.log([1, 1, 2, 4, 8])) ** 2
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found, [1, 1, 1.1434, 1.2965, 1.4591], atol=1e-4)
