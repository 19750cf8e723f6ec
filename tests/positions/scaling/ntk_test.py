from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import NTK, DynamicNTK, Unscaled
from tests import vectors


@functools.partial(jax.jit, static_argnums=0)
def traced(scaling: DynamicNTK, length: jax.Array) -> jax.Array:
    return scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, length)


@pytest.mark.parametrize(('factor', 'expected'), vectors.entries('ntk_static'))
def test_a_larger_base(factor: str, expected: dict[str, Any]) -> None:
    found = NTK(float(factor)).inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found, expected['inv_freq'], rtol=vectors.RTOL)
    rebased = Unscaled().inverse_frequencies(expected['base'], vectors.DIMS, 1)
    np.testing.assert_allclose(found, rebased, rtol=vectors.RTOL)


@pytest.mark.parametrize('factor', [1.0, 2.0, 16.0])
def test_the_fastest_stays_and_the_slowest_is_interpolated(factor: float) -> None:
    found = NTK(factor).inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    plain = Unscaled().inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(found[0], plain[0], rtol=0)
    np.testing.assert_allclose(found[-1], plain[-1] / factor, rtol=1e-6)


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('ntk_dynamic'))
def test_a_base_that_follows_the_length(name: str, expected: dict[str, Any]) -> None:
    factor, length = map(int, re.findall(r'\d+', name))
    scaling = DynamicNTK(factor, vectors.TRAIN_LENGTH)
    base = scaling.base_at(vectors.BASE, vectors.DIMS, length)
    np.testing.assert_allclose(base, expected['base'], rtol=vectors.RTOL)
    found = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, length)
    np.testing.assert_allclose(found, expected['inv_freq'], rtol=vectors.RTOL)
    in_a_program = traced(scaling, jnp.float32(length))
    np.testing.assert_allclose(in_a_program, expected['inv_freq'], rtol=vectors.RTOL)


def test_up_to_the_training_length_nothing_changes() -> None:
    """Bit for bit; not beyond."""
    scaling = DynamicNTK(8.0, vectors.TRAIN_LENGTH)
    plain = Unscaled().inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    for length in (1, 100, 2048):
        found = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, length)
        np.testing.assert_array_equal(found, plain)
    beyond = scaling.inverse_frequencies(vectors.BASE, vectors.DIMS, 2049)
    assert np.all(beyond[1:] < plain[1:])


def test_a_factor_of_one_is_static_scaling_by_the_growth_in_length() -> None:
    dynamic = DynamicNTK(1.0, 2048).inverse_frequencies(vectors.BASE, vectors.DIMS, 3 * 2048)
    static = NTK(3.0).inverse_frequencies(vectors.BASE, vectors.DIMS, 1)
    np.testing.assert_allclose(dynamic, static, rtol=vectors.RTOL)
