from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import LongRoPE, RoPE, longrope_multiplier
from tests import vectors
from tests.positions import cases

SHORT = tuple(np.linspace(1, 1.5, 32).tolist())
LONG = tuple(np.linspace(1, 8, 32).tolist())
RULE = LongRoPE(SHORT, LONG, vectors.TRAIN_LENGTH, 1.0)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('longrope_attention_factor'))
def test_the_attention_factor(name: str, expected: float) -> None:
    """Queries and keys get it at every length."""
    factor, train_length = map(int, re.findall(r'\d+', name))
    multiplier = longrope_multiplier(factor, train_length)
    assert multiplier == pytest.approx(expected, rel=1e-12)
    rule = LongRoPE((1.0, 1.0), (2.0, 2.0), train_length, factor=float(factor))
    assert rule.attention_factor == multiplier
    assert dataclasses.replace(rule, multiplier=1.3).attention_factor == 1.3
    encoding = RoPE(scaling=rule)
    x_BTNH = cases.normal(0, 1, 1, 1, 4)
    for length in (1, 2 * train_length):
        q_BTNH, k_BTNH = cases.encode(encoding, x_BTNH, x_BTNH, np.array([[3]], np.int32), length)
        ratio = np.sum(np.asarray(q_BTNH) * k_BTNH) / np.sum(x_BTNH**2)
        np.testing.assert_allclose(ratio, expected**2, rtol=vectors.RTOL)


def test_without_an_extension_there_is_no_factor() -> None:
    assert longrope_multiplier(1.0, 2048) == longrope_multiplier(0.5, 2048) == 1


def test_the_factors_change_beyond_the_training_length() -> None:
    plain = np.array(vectors.VECTORS['rope']['inv_freq'])
    traced = jax.jit(lambda n: RULE.inverse_frequencies(vectors.BASE, vectors.DIMS, n))
    for length in (1, 2048, 2049, 9000):
        expected = plain / np.array(SHORT if length <= 2048 else LONG)
        known = RULE.inverse_frequencies(vectors.BASE, vectors.DIMS, length)
        for found in (known, traced(jnp.float32(length))):
            np.testing.assert_allclose(found, expected, rtol=vectors.RTOL)


def test_there_is_a_factor_for_every_pair() -> None:
    RULE.check(64)
    with pytest.raises(ValueError, match=r'^scaling\.short is 32 values, .*; 8 .* take 4 factors'):
        RoPE(scaling=RULE).check(8)


def test_the_multiplier_is_given_or_follows_from_the_factor() -> None:
    """Neither list says the factor: the largest of a published one is twice as large."""
    RoPE(scaling=dataclasses.replace(RULE, multiplier=None, factor=4.0)).check(64)
    with pytest.raises(ValueError, match=r'^scaling\.multiplier is None; .* with a factor'):
        RoPE(scaling=dataclasses.replace(RULE, multiplier=None)).check(64)
    with pytest.raises(ValueError, match=r'^scaling\.train_length is 1; with a factor .* least 2'):
        RoPE(scaling=LongRoPE(SHORT, LONG, 1, factor=4.0)).check(64)
    with pytest.raises(ValueError, match=r'^factor is 0.0; it must be finite and above 0'):
        LongRoPE((1.0,), (1.0,), 16, factor=0.0)
