from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nope.positions import RoPE, Yarn
from tests import vectors
from tests.positions import cases

L = vectors.TRAIN_LENGTH


def logits_over_plain(scaling: Yarn, length: int) -> float:
    """q . k of tokens at one position, next to what it is without the rule."""
    x_BTNH = cases.normal(0, 1, 1, 1, vectors.DIMS)
    position_BT = np.array([[5]], np.int32)
    q_BTNH, k_BTNH = cases.encode(RoPE(scaling=scaling), x_BTNH, x_BTNH, position_BT, length)
    return float(np.sum(np.asarray(q_BTNH) * k_BTNH) / np.sum(x_BTNH**2))


@pytest.mark.parametrize('expected', vectors.whole('yarn'))
def test_the_ramp_runs_over_whole_dimensions(expected: dict[str, Any]) -> None:
    scaling = Yarn(4.0, L)
    assert (scaling.fast, scaling.slow) == (expected['beta_fast'], expected['beta_slow'])
    keep = scaling.keep(vectors.BASE, vectors.DIMS)
    np.testing.assert_allclose(keep, expected['extrapolation_mask'], rtol=1e-9)
    assert np.flatnonzero(keep < 1)[0] == expected['low'] + 1
    assert np.flatnonzero(keep == 0)[0] == expected['high']


@pytest.mark.parametrize('expected', vectors.whole('yarn'))
def test_the_ends_of_the_ramp_before_they_are_rounded(expected: dict[str, Any]) -> None:
    """Of the line through two of its points, where it leaves 1 and where it reaches 0."""
    keep = Yarn(4.0, L, truncate=False).keep(vectors.BASE, vectors.DIMS)
    slope = keep[11] - keep[10]
    ends = [10 + (level - keep[10]) / slope for level in (1, 0)]
    np.testing.assert_allclose(ends, [expected['dim_low_exact'], expected['dim_high_exact']], 1e-12)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('yarn', starting_with='s'))
def test_yarn(name: str, expected: dict[str, Any]) -> None:
    scaling = Yarn(float(name[1:]), L)
    found = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found, expected['inv_freq'], rtol=vectors.RTOL)
    assert scaling.attention_factor == pytest.approx(expected['mscale'], rel=1e-12)
    multiplier = logits_over_plain(scaling, L)
    assert multiplier == pytest.approx(expected['logit_multiplier'], rel=vectors.RTOL)


@pytest.mark.parametrize(
    ('name', 'expected'), vectors.entries('uniform_fit', starting_with='yarn_like')
)
def test_logits_grow_with_the_square_of_the_logarithm(
    name: str, expected: dict[str, float]
) -> None:
    found = [logits_over_plain(Yarn(float(times), L), L) for times in expected]
    np.testing.assert_allclose(found, list(expected.values()), rtol=vectors.RTOL)


@pytest.mark.parametrize('expected', vectors.whole('yarn_truncate_false_s4'))
def test_a_ramp_that_ends_between_dimensions(expected: list[float]) -> None:
    scaling = Yarn(4.0, L, truncate=False)
    found = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found, expected, rtol=vectors.RTOL)


def test_a_multiplier_takes_the_place_of_the_rule() -> None:
    assert logits_over_plain(Yarn(4.0, L, multiplier=1.5), L) == pytest.approx(2.25, rel=1e-6)
    assert Yarn(0.5, L).attention_factor == 1
