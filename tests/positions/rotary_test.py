from __future__ import annotations

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.positions import DynamicNTK, Position, Rotary

VECTORS = json.loads((pathlib.Path(__file__).parent / 'vectors.json').read_text())
ENCODINGS = [Rotary(), Rotary(scaling=DynamicNTK(factor=2.0, train_length=16))]


def normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def rotate(encoding: Position, x_BTNH: jax.Array, positions: list[int], length: int) -> jax.Array:
    return encoding.encode(x_BTNH, x_BTNH, jnp.asarray([positions], jnp.int32), length)[0]


def test_inverse_frequencies_are_those_of_llama() -> None:
    found = Rotary().inverse_frequencies(64, 2048)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, VECTORS['rotary'], rtol=1e-6)


@pytest.mark.parametrize(
    'case', VECTORS['dynamic_ntk'], ids=lambda c: f'factor{c["factor"]}-{c["length"]}'
)
def test_dynamic_ntk_follows_the_length(case: dict) -> None:
    scaling = DynamicNTK(factor=case['factor'], train_length=2048)
    np.testing.assert_allclose(
        scaling.base_at(10_000.0, 64, case['length']), case['base'], rtol=1e-6
    )
    inverse = Rotary(scaling=scaling).inverse_frequencies
    np.testing.assert_allclose(inverse(64, case['length']), case['inv_freq'], rtol=1e-6)
    traced = jax.jit(lambda n: inverse(64, n))(jnp.float32(case['length']))
    np.testing.assert_allclose(traced, case['inv_freq'], rtol=1e-6)


def test_dynamic_ntk_is_plain_rotary_up_to_the_training_length() -> None:
    scaled = Rotary(scaling=DynamicNTK(factor=8.0, train_length=2048))
    for length in (1, 100, 2048):
        np.testing.assert_array_equal(
            scaled.inverse_frequencies(64, length), Rotary().inverse_frequencies(64, length)
        )


def test_dimension_j_turns_with_dimension_j_plus_half() -> None:
    x_BTNH = jnp.asarray([1.0, 2.0, 3.0, 4.0]).reshape(1, 1, 1, 4)
    expected = [-1.9841106485555495, 1.959900667496664, 2.4623779024123156, 4.019799668334994]
    turned = rotate(Rotary(), x_BTNH, [1], 2)
    np.testing.assert_allclose(turned.ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize('encoding', ENCODINGS, ids=Rotary.describe)
def test_position_zero_is_the_identity(encoding: Rotary) -> None:
    x_BTNH = normal(0, 2, 1, 4, 8)
    np.testing.assert_array_equal(rotate(encoding, x_BTNH, [0], 64), x_BTNH)


@pytest.mark.parametrize('encoding', ENCODINGS, ids=Rotary.describe)
def test_norms_are_kept(encoding: Rotary) -> None:
    x_BTNH = normal(0, 2, 64, 4, 8)
    turned = rotate(encoding, x_BTNH, list(range(64)), 64)
    norms = [np.linalg.norm(x, axis=-1) for x in (turned, x_BTNH)]
    np.testing.assert_allclose(norms[0], norms[1], rtol=1e-6)


@pytest.mark.parametrize('encoding', ENCODINGS, ids=Rotary.describe)
def test_products_depend_on_the_distance_alone(encoding: Rotary) -> None:
    """One query vector and one key vector at every position: q_m . k_n is a function of m - n."""
    T = 32
    q_BTNH, k_BTNH = (jnp.broadcast_to(normal(s, 1, 1, 1, 8), (1, T, 1, 8)) for s in (0, 1))
    positions_BT = jnp.arange(T, dtype=jnp.int32)[None]
    q_BTNH, k_BTNH = encoding.encode(q_BTNH, k_BTNH, positions_BT, T)
    product_TS = np.einsum('BTNH,BSNH->TS', q_BTNH, k_BTNH)
    for distance in range(-T + 1, T):
        diagonal = np.diagonal(product_TS, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=0, atol=2e-5)
    assert np.ptp(product_TS) > 1


def test_half_precision_is_rotated_in_float32() -> None:
    """At position 1000 bfloat16 angles would be off by whole turns."""
    x_BTNH = normal(0, 1, 1, 2, 8).astype(jnp.bfloat16)
    turned = rotate(Rotary(), x_BTNH, [1001], 2048)
    exact = rotate(Rotary(), x_BTNH.astype(jnp.float32), [1001], 2048)
    assert turned.dtype == jnp.bfloat16
    np.testing.assert_array_equal(turned, exact.astype(jnp.bfloat16))
