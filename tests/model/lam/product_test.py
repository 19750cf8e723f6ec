"""The product of a law that a model was trained under and a form that is searched on top."""

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
from tests.model.lam.forms_test import varied

POSITIONS = jnp.arange(90, dtype=jnp.int32)
PRODUCTS = (
    Product(LogLength(16), LogSquare(16)),
    Product(LogSquare(16), lam.Constant()),
    Product(LogPosition(16), LogLength(16)),
    Product(LogLength(16), ScalableSoftmax()),
    Product(ScalableSoftmax(), LogPosition(16)),
)


def parts(form: Product, coefficients_LNC: jax.Array) -> list[jax.Array]:
    """Coefficients of both forms, as each takes them."""
    kept = form.trained.numbers
    split = coefficients_LNC[..., :kept], coefficients_LNC[..., kept:]
    return [part[..., 0] if part.shape[-1] == 1 else part for part in split]


@pytest.mark.parametrize('form', PRODUCTS, ids=lambda form: form.slug)
@pytest.mark.parametrize('length', [1, 16, 90])
def test_multipliers_are_those_of_both_forms_multiplied(form: Product, length: int) -> None:
    coefficients = varied(form)
    found = form.multipliers(coefficients, length, POSITIONS)
    first, second = (
        one.multipliers(own, length, POSITIONS)
        for one, own in zip((form.trained, form.searched), parts(form, coefficients), strict=True)
    )
    if form.follows_position:
        first, second = (p if p.ndim == 3 else p[:, None] for p in (first, second))
        assert found.shape == (2, len(POSITIONS), 3)
    np.testing.assert_array_equal(found, first * second)


@pytest.mark.parametrize('form', PRODUCTS, ids=lambda form: form.slug)
def test_the_coefficients_of_the_trained_law_have_no_gradient(form: Product) -> None:
    def total(coefficients: jax.Array) -> jax.Array:
        return jnp.sum(form.multipliers(coefficients, 90, POSITIONS) ** 2)

    first, second = parts(form, jax.grad(total)(varied(form) + 0.3))
    np.testing.assert_array_equal(first, 0)
    assert np.all(np.asarray(second) != 0)


def test_what_it_says_of_itself_follows_from_both() -> None:
    form = Product(LogSquare(16), ScalableSoftmax())
    assert (form.numbers, form.follows_length, form.follows_position) == (3, True, True)
    assert form.fresh == (0.0, 0.0, ScalableSoftmax.published)
    assert lam.initial(form, 2, 4).shape == (2, 4, 3)
    assert form.slug == 'logsquare-scalablesoftmax' and form.describe() == (
        'log-square times scalable softmax'
    )
    with pytest.raises(ValueError, match=r'^start is \(1\.0, 2\.0\); it takes 1 for every head'):
        form.check_start((1.0, 2.0))
    assert rebuild(plain(form), model_types()) == form


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
