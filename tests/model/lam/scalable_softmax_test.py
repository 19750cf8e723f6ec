"""Lambda of Scalable-Softmax."""

from __future__ import annotations

import numpy as np

from nope.model import lam
from nope.model.lam.scalable_softmax import ScalableSoftmax
from tests.model.lam.multipliers import by_keys


def test_it_is_the_logarithm_of_the_keys_times_the_coefficient() -> None:
    found = by_keys(ScalableSoftmax(), ScalableSoftmax.published, [1, 2, 1024])
    np.testing.assert_allclose(found, 0.43 * np.log([1.0, 2.0, 1024.0]), rtol=1e-6)


def test_the_published_starts_that_keep_the_mean_at_one() -> None:
    """1 / mean(ln i), 0.168 for 1,024 tokens."""
    start = 1 / np.log(np.arange(1, 1025)).mean()
    assert round(start, 3) == 0.168
    found = by_keys(ScalableSoftmax(), start, list(range(1, 1025)))
    np.testing.assert_allclose(found.mean(), 1, rtol=1e-6)


def test_no_coefficient_is_the_plain_softmax() -> None:
    assert ScalableSoftmax.neutral is None
    np.testing.assert_array_equal(lam.initial(ScalableSoftmax(), 2, 3), lam.uniform(0.43, 2, 3))
