"""Entropy of tokens by their frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from nope.evals import unigram


def test_the_entropy_is_that_of_the_frequencies():
    tokens = np.array([[7, 7, 7], [7, 9, 300]])
    expected = -(4 / 6 * np.log(4 / 6) + 2 / 6 * np.log(1 / 6))
    assert unigram.entropy(tokens) == pytest.approx(expected)
    assert unigram.entropy(np.full(5, 3)) == 0


def test_no_model_of_frequencies_is_below_it():
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 5, 100)
    for _ in range(20):
        p = rng.dirichlet(np.ones(5))
        assert -np.log(p[tokens]).mean() >= unigram.entropy(tokens)
