"""The product of a law that a model was trained under and a law that is searched on top."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.identity import plain
from nope.interop.run_folder import model_types
from nope.model import lam
from nope.model.lam import LogLength, Product
from nope.model.lam.log_position import LogPosition
from nope.model.lam.log_square import LogSquare
from nope.model.lam.scalable_softmax import ScalableSoftmax
from nope.runtime.sections import rebuild
from nope.variables import lam_of, with_lam, with_lam_beside
from tests import tiny
from tests.model.lam.every_law_test import varied

POSITIONS = jnp.arange(90, dtype=jnp.int32)
PRODUCTS = (
    Product(LogLength(16), LogSquare(16)),
    Product(LogSquare(16), lam.Constant()),
    Product(LogPosition(16), LogLength(16)),
    Product(LogLength(16), ScalableSoftmax()),
    Product(ScalableSoftmax(), LogPosition(16)),
)


def parts(law: Product, coefficients_LNC: jax.Array) -> list[jax.Array]:
    """Coefficients of both laws, as each takes them."""
    kept = law.trained.numbers
    split = coefficients_LNC[..., :kept], coefficients_LNC[..., kept:]
    return [part[..., 0] if part.shape[-1] == 1 else part for part in split]


@pytest.mark.parametrize('law', PRODUCTS, ids=lambda law: law.slug)
@pytest.mark.parametrize('length', [1, 16, 90])
def test_multipliers_are_those_of_both_forms_multiplied(law: Product, length: int) -> None:
    coefficients = varied(law)
    found = law.multipliers(coefficients, length, POSITIONS)
    first, second = (
        one.multipliers(own, length, POSITIONS)
        for one, own in zip((law.trained, law.searched), parts(law, coefficients), strict=True)
    )
    if law.follows_position:
        first, second = (p if p.ndim == 3 else p[:, None] for p in (first, second))
        assert found.shape == (2, len(POSITIONS), 3)
    np.testing.assert_array_equal(found, first * second)


@pytest.mark.parametrize('law', PRODUCTS, ids=lambda law: law.slug)
def test_the_coefficients_of_the_trained_law_have_no_gradient(law: Product) -> None:
    def total(coefficients: jax.Array) -> jax.Array:
        return jnp.sum(law.multipliers(coefficients, 90, POSITIONS) ** 2)

    first, second = parts(law, jax.grad(total)(varied(law) + 0.3))
    np.testing.assert_array_equal(first, 0)
    assert np.all(np.asarray(second) != 0)


def test_what_it_says_of_itself_follows_from_both() -> None:
    law = Product(LogSquare(16), ScalableSoftmax())
    assert (law.numbers, law.follows_length, law.follows_position) == (3, True, True)
    assert law.fresh == (0.0, 0.0, ScalableSoftmax.published)
    assert lam.initial(law, 2, 4).shape == (2, 4, 3)
    assert law.slug == 'logsquare-scalablesoftmax' and law.describe() == (
        'log-square times scalable softmax'
    )
    with pytest.raises(ValueError, match=r'^start is \(1\.0, 2\.0\); it takes 1 for every head'):
        law.check_start((1.0, 2.0))
    assert rebuild(plain(law), model_types()) == law


def test_a_search_on_top_starts_with_the_law_and_one_coefficient_for_all_heads() -> None:
    """Of what a search before it left only the law's coefficients."""
    law, first, second = LogPosition(16), LogSquare(16), LogLength(16)
    own_LN = jnp.arange(8.0, dtype=jnp.float32).reshape(2, 4)
    variables = with_lam(tiny.variables(tiny.model(lam=law)), own_LN)
    found = with_lam_beside(variables, law, first, (0.5, -0.1))
    assert lam_of(found).shape == (2, 4, 3) and found['params'] is variables['params']
    np.testing.assert_array_equal(lam_of(found)[..., 0], own_LN)
    np.testing.assert_array_equal(lam_of(found)[0, 0, 1:], np.float32([0.5, -0.1]))
    again = with_lam_beside(found, law, second, 0.25)
    np.testing.assert_array_equal(lam_of(again)[..., 0], own_LN)
    np.testing.assert_array_equal(lam_of(again)[..., 1], np.float32(0.25))
