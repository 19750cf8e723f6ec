"""Lambda as a ratio of logarithms, by position."""

from __future__ import annotations

import numpy as np
import pytest

from nope.model.lam.log_position import LogPosition
from nope.model.lam.log_ratio_position import LogRatioPosition
from nope.runtime.errors import FieldError
from tests.model.lam.multipliers import by_keys


def test_the_values_are_grok_2_s_and_qwen_s() -> None:
    keys = [1, 2048, 4096, 8192, 16384]
    found = by_keys(LogRatioPosition(2048), LogRatioPosition.published, keys)
    expected = [max(1.0, np.log(i) / np.log(2048)) for i in keys]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found, [1, 1, 1.0909, 1.1818, 1.2727], atol=1e-4)


def test_a_coefficient_of_one_is_that_of_log_position_over_the_logarithm() -> None:
    keys = list(range(1, 300))
    same = by_keys(LogPosition(64), 1.7 / np.log(64), keys)
    np.testing.assert_allclose(by_keys(LogRatioPosition(64), 1.7, keys), same, rtol=1e-6)


def test_a_length_without_a_logarithm_is_refused() -> None:
    with pytest.raises(FieldError, match=r'^train_length is 1; it must be at least 2'):
        LogRatioPosition(1)
