"""What every law of lambda says and computes."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.evals.multiplier_grid import fit_log
from nope.model import lam
from nope.runtime.errors import FieldError
from tests import vectors
from tests.model.lam.by_keys import ByKeys

COEFFICIENTS = jnp.asarray([[0.5, 1.0, 1.7], [0.0, 3.0, 1.3]], jnp.float32)
POSITIONS = jnp.arange(70, dtype=jnp.int32)
LENGTHS = (1, 63, 64, 1000)
LAWS = [
    *(lam.from_section(name, 'law', train_length=16, head_dim=8) for name in lam.LAWS),
    ByKeys(),
]


def varied(law: lam.Law) -> jax.Array:
    """Coefficients that differ from head to head, [2, 3] or [2, 3, C]."""
    if law.numbers == 1:
        return COEFFICIENTS
    return COEFFICIENTS[..., None] * jnp.arange(1.0, law.numbers + 1)


def named(law: lam.Law) -> str:
    return type(law).__name__


@pytest.mark.parametrize(('name', 'expected'), vectors.entries('uniform_fit', starting_with='a='))
def test_log_length_is_the_form_of_the_published_fits(
    name: str, expected: dict[str, float]
) -> None:
    """1 + a ln(times the training length), from which the fit recovers a."""
    a, law = float(name.removeprefix('a=')), lam.LogLength(train_length=2048)
    lengths = np.array([2048 * int(times) for times in expected])
    found = [law.multipliers(jnp.asarray([[a]]), length)[0, 0] for length in lengths.tolist()]
    np.testing.assert_allclose(found, list(expected.values()), rtol=vectors.RTOL)
    assert fit_log(lengths, np.array(list(expected.values())), 2048) == pytest.approx((a, 1))


@pytest.mark.parametrize(('value', 'expected'), vectors.entries('bf16_round'))
def test_a_multiplier_stays_float32(value: str, expected: float) -> None:
    """Where it were kept in bfloat16, as the papers' code does, it would be another one."""
    coefficient = jnp.full((1, 1), float(value), jnp.float32)
    found = lam.Constant().multipliers(coefficient, 1)
    assert found[0, 0] == np.float32(value) and found.dtype == jnp.float32
    assert float(found[0, 0].astype(jnp.bfloat16)) == expected


# What a law says of itself


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_a_fresh_model_has_the_softmax_as_it_is_where_a_form_can(law: lam.Law) -> None:
    initial = lam.initial(law, 2, 3)
    lam.check_shape(initial, 2, 3, law.numbers)
    assert initial.dtype == jnp.float32
    found = [np.asarray(law.multipliers(initial, n, POSITIONS)) for n in LENGTHS]
    assert all(map(lam.is_neutral, found)) == (law.neutral is not None)
    assert not lam.is_neutral(np.asarray(law.multipliers(varied(law), 1000, POSITIONS)))


def test_a_form_without_a_neutral_coefficient_begins_at_the_published_one() -> None:
    class Unbounded(ByKeys):
        neutral = None
        published = 0.4

    np.testing.assert_array_equal(lam.initial(Unbounded(), 2, 3), lam.uniform(0.4, 2, 3))


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_multipliers_have_an_axis_of_positions_where_they_follow_them(law: lam.Law) -> None:
    found = law.multipliers(varied(law), 1000, POSITIONS)
    assert found.shape == ((2, 70, 3) if law.follows_position else (2, 3))
    assert found.dtype == jnp.float32


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_a_form_follows_what_it_says_it_follows(law: lam.Law) -> None:
    at = [np.asarray(law.multipliers(varied(law), n, POSITIONS)) for n in (100, 1000)]
    assert np.array_equal(*at) != law.follows_length
    if law.follows_position:
        assert np.all(at[0][:, 0] != at[0][:, -1], where=np.asarray(COEFFICIENTS) != 0)


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_coefficients_act_up_to_the_training_length_where_a_form_says_so(law: lam.Law) -> None:
    def at(coefficients: jax.Array, length: int) -> jax.Array:
        return law.multipliers(coefficients, length, jnp.arange(length))

    slopes = [jax.jacobian(at)(varied(law), length) for length in (9, 16)]  # L = 16
    assert any(bool(np.any(slope != 0)) for slope in slopes) == law.acts_inside


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_coefficients_act_within_a_length_where_a_form_says_so(law: lam.Law) -> None:
    def at(coefficients: jax.Array, length: int) -> jax.Array:
        return law.multipliers(coefficients, length, jnp.arange(length))

    acts = False
    for length in range(2, 19):  # L = 16
        acts = acts or bool(np.any(jax.jacobian(at)(varied(law), length) != 0))
        assert law.acts_within(length) == acts, length


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_a_form_that_starts_from_a_uniform_multiplier_has_it_as_its_own(law: lam.Law) -> None:
    multipliers = law.multipliers(lam.uniform(1.55, 2, 3, law.numbers), 1000, POSITIONS)
    assert bool(np.all(multipliers == np.float32(1.55))) == law.starts_from_uniform


@pytest.mark.parametrize('law', LAWS, ids=named)
def test_captions_and_folder_names_tell_forms_apart(law: lam.Law) -> None:
    assert law.describe() and law.slug == named(law).lower()
    others = [other for other in LAWS if other is not law]
    assert law.describe() not in [other.describe() for other in others]


def test_captions_name_the_forms_as_the_papers_do() -> None:
    assert lam.Constant().describe() == 'HeadScale'
    assert lam.LogLength(64).describe() == 'log-length'


@pytest.mark.parametrize('law', LAWS, ids=named)
@pytest.mark.parametrize('start', [math.nan, math.inf, -math.inf])
def test_no_search_starts_from_what_is_not_finite(law: lam.Law, start: float) -> None:
    with pytest.raises(FieldError, match=rf'^start is {start}; it must be finite'):
        law.check_start(start)


def test_a_constant_coefficient_is_above_zero_and_others_need_not_be() -> None:
    with pytest.raises(FieldError, match=r'^start is 0\.0; it must be finite and above 0'):
        lam.Constant().check_start(0.0)
    for law in LAWS:
        if not isinstance(law, lam.Constant):
            law.check_start(-0.5)


def test_one_factor_for_every_head_is_refused_where_there_is_none() -> None:
    constant, log_length, by_keys = lam.Constant(), lam.LogLength(train_length=64), ByKeys()
    constant.check_foldable(None)
    log_length.check_foldable(128)
    with pytest.raises(ValueError, match=r'LogLength follows the length.*one length'):
        log_length.check_foldable(None)
    for length in (None, 128):
        with pytest.raises(ValueError, match=r'ByKeys follows the position.*W_q'):
            by_keys.check_foldable(length)


# Coefficients


def test_uniform_coefficients_are_the_same_in_all_heads() -> None:
    found = lam.uniform(1.55, 2, 3)
    np.testing.assert_array_equal(found, np.full((2, 3), 1.55, np.float32), strict=True)


def test_a_head_may_have_several_numbers() -> None:
    found = lam.uniform((0.4, -0.1), 2, 3, 2)
    assert found.shape == (2, 3, 2) and found.dtype == jnp.float32
    np.testing.assert_array_equal(found[1, 2], np.array([0.4, -0.1], np.float32))
    np.testing.assert_array_equal(lam.uniform(0.4, 2, 3, 2), np.full((2, 3, 2), np.float32(0.4)))
    lam.check_shape(found, 2, 3, 2)
    with pytest.raises(ValueError, match=r'lam has shape \(2, 3, 2\).*takes \(2, 3\)'):
        lam.check_shape(found, 2, 3)


def test_a_start_has_as_many_numbers_as_a_head() -> None:
    class Pair(ByKeys):
        numbers = 2

    for start in (0.4, (0.4, -0.1)):
        Pair().check_start(start)
    with pytest.raises(FieldError, match=r'^start is \(0\.4,\); it takes 2 for every head'):
        Pair().check_start((0.4,))
    with pytest.raises(FieldError, match=r'^start is \(0\.4, nan\); it must be finite'):
        Pair().check_start((0.4, math.nan))
    with pytest.raises(FieldError, match=r'^start is \(0\.4, -0\.1\); it must be finite and above'):
        lam.Constant().check_start((0.4, -0.1))


@pytest.mark.parametrize('shape', [(3,), (3, 2), (2, 1), (1, 3), (2, 3, 1)])
def test_a_wrong_shape_does_not_broadcast(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r'lam has shape .* takes \(2, 3\)'):
        lam.check_shape(jnp.ones(shape), 2, 3)
    lam.check_shape(COEFFICIENTS, 2, 3)
