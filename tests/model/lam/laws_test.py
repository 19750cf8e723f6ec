"""Values of every law of lambda, and how laws are each other's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import lam
from nope.model.lam import Law, LogFloor, LogLength
from nope.model.lam.info_scale import InfoScale
from nope.model.lam.log_offset import LogOffset
from nope.model.lam.log_position import LogPosition
from nope.model.lam.log_ratio import LogRatio
from nope.model.lam.log_ratio_position import LogRatioPosition
from nope.model.lam.log_square import LogSquare
from nope.model.lam.power import Power
from nope.model.lam.scalable_softmax import ScalableSoftmax
from nope.model.lam.scalable_softmax_bias import ScalableSoftmaxBias
from nope.model.lam.searched_offset import SearchedOffset
from nope.model.lam.yarn_temperature import YarnTemperature

DOUBLED = [1024, 2048, 4096, 8192, 16384]
ENTROPY = 1 - np.maximum(DOUBLED, 2048.0) ** (-2 / 64)


def multipliers(law: Law, coefficient: lam.Coefficient, at: Sequence[int]) -> np.ndarray:
    """p of one head in sequences of so many tokens, or of queries that see so many keys."""
    coefficients_LN = lam.uniform(coefficient, 1, 1, law.numbers)
    if law.follows_position:
        positions_T = jnp.asarray(at, jnp.int32) - 1
        return np.asarray(law.multipliers(coefficients_LN, 10_000, positions_T)[0, :, 0])
    return np.array([law.multipliers(coefficients_LN, n)[0, 0] for n in at])


@pytest.mark.parametrize(
    ('law', 'coefficient', 'at', 'expected'),
    [
        (lam.Constant(), 1.7, [1, 64, 10_000], [1.7, 1.7, 1.7]),
        (LogLength(64), 0.5, [1, 63, 64], [1, 1, 1]),
        (LogLength(64), 0.5, [96, 128, 512], 1 + 0.5 * np.log([1.5, 2, 8])),
        # Inkling's, Llama 4's, Grok-2's and Qwen's, SWAN's, HypeNet's, Beam's, Su Jianlin's,
        # YaRN's, InfoScale's.
        (LogPosition(2048), None, [1, 2047, *DOUBLED[1:]], 1 + 0.1 * np.log([1, 1, 1, 2, 4, 8])),
        (LogFloor(2048), None, [1, 2047, 2048, 4095, 4096], [1, 1, *[1.0693147] * 2, 1.1098612]),
        (LogFloor(2048), None, [8192, 16384], [1.1609438, 1.2197225]),
        (LogRatioPosition(2048), None, [1, *DOUBLED[1:]], [1, 1, 12 / 11, 13 / 11, 14 / 11]),
        (LogOffset(1024), None, [1, 512, 8192], np.log([363, 874, 8554]) / np.log(362)),
        (SearchedOffset(), None, [1, 512, 8192], np.log([501, 1012, 8692]) / np.log(500)),
        (SearchedOffset(), np.log(361), [512, 8192], np.log([874, 8554]) / np.log(362)),
        (Power(2048), None, [1, 2048, 16384], np.array([2049 / 2048, 2, 9]) ** 0.1),
        (LogRatio(512), None, [1, 512, 1024, 4096], [1, 1, 10 / 9, 12 / 9]),
        (LogRatio(512, inside=True), None, [1, 16, 512, 1024], [0, 4 / 9, 1, 10 / 9]),
        (YarnTemperature(2048), None, DOUBLED, (1 + 0.1 * np.log([1, 1, 2, 4, 8])) ** 2),
        (InfoScale(2048, 64), None, DOUBLED, np.sqrt(ENTROPY / ENTROPY[0])),
        (LogSquare(64), (0.4, -0.1), [1, 64], [1, 1]),
        (LogSquare(64), (0.4, -0.1), [96], [1 + 0.4 * np.log(1.5) - 0.1 * np.log(1.5) ** 2]),
        (ScalableSoftmax(), None, [1, 2, 1024], 0.43 * np.log([1, 2, 1024])),
        (ScalableSoftmaxBias(), (0.43, 0.2), [1, 2, 100], 0.2 + 0.43 * np.log([1, 2, 100])),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Law) else '',
)
def test_the_values_are_the_published_ones(
    law: Law, coefficient: lam.Coefficient | None, at: list[int], expected: Any
) -> None:
    """A coefficient of None is the published one."""
    given = law.published if coefficient is None else coefficient
    assert given is not None
    np.testing.assert_allclose(multipliers(law, given, at), expected, rtol=2e-6, atol=1e-6)


KEYS = list(range(1, 300))


@pytest.mark.parametrize(
    ('law', 'coefficient', 'same', 'other'),
    [
        (LogRatio(64), 1.7, LogLength(64), 1.7 / np.log(64)),
        (LogRatioPosition(64), 1.7, LogPosition(64), 1.7 / np.log(64)),
        (LogSquare(64), (0.4, 0.0), LogLength(64), 0.4),
        (ScalableSoftmaxBias(), (0.4, 0.0), ScalableSoftmax(), 0.4),
        (ScalableSoftmaxBias(), (0.4, 1.0), LogPosition(1), 0.4),
    ],
)
def test_a_law_is_another_one_of_another_coefficient(
    law: Law, coefficient: lam.Coefficient, same: Law, other: float
) -> None:
    found = multipliers(law, coefficient, KEYS)
    np.testing.assert_allclose(found, multipliers(same, other, KEYS), rtol=1e-6, atol=1e-6)


def test_the_coefficient_of_info_scale_is_an_exponent() -> None:
    one, two, minus = (multipliers(InfoScale(64, 16), r, [64, 128, 1000]) for r in (1.0, 2.0, -1.0))
    np.testing.assert_allclose(two, one**2, rtol=1e-6)
    np.testing.assert_allclose(minus, 1 / one, rtol=1e-6)


def test_the_offset_of_swan_keeps_its_share_of_another_length() -> None:
    assert LogOffset(1024).offset == 362
    assert LogOffset(64).offset == pytest.approx(22.625)
    assert LogOffset(64, share=0.5).offset == 32


def test_scalable_softmax_may_start_at_a_mean_of_one() -> None:
    """1 / mean(ln i), 0.168 for 1,024 tokens; no coefficient is the plain softmax."""
    start = 1 / np.log(np.arange(1, 1025)).mean()
    assert round(start, 3) == 0.168 and ScalableSoftmax.neutral is None
    np.testing.assert_allclose(
        multipliers(ScalableSoftmax(), start, range(1, 1025)).mean(), 1, rtol=1e-6
    )
