"""Lambda as the logarithm of the position behind an offset."""

from __future__ import annotations

import numpy as np
import pytest

from nope.model.lam.log_offset import LogOffset
from nope.runtime.errors import FieldError
from tests.model.lam.multipliers import by_keys


def test_the_values_are_swan_s() -> None:
    keys = [1, 512, 1024, 8192, 32768]
    found = by_keys(LogOffset(1024), LogOffset.published, keys)
    np.testing.assert_allclose(found, np.log(362 + np.array(keys)) / np.log(362), rtol=1e-6)
    assert LogOffset(1024).offset == 362


def test_the_offset_keeps_its_share_of_another_length() -> None:
    assert LogOffset(64).offset == pytest.approx(22.625)
    assert LogOffset(64, share=0.5).offset == 32


@pytest.mark.parametrize('share', [1 / 64, 0.0, -1.0, np.inf, np.nan])
def test_an_offset_without_a_positive_logarithm_is_refused(share: float) -> None:
    with pytest.raises(
        FieldError, match=r'^share is .*train_length \(64\) must be finite and above 1'
    ):
        LogOffset(64, share)
