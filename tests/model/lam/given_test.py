"""Laws that a model comes with, beside lambda."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from nope.identity import plain
from nope.interop.run_folder import model_types
from nope.model import LayerKind, ModelConfig, lam
from nope.model.lam import GivenLaw, LogFloor
from nope.positions import NoPE, RoPE, Split
from nope.runtime.sections import rebuild
from tests import tiny
from tests.model.programs import T, run

FIELD = 'model.law'


def hidden(config: ModelConfig, lam_of: float = 1.0) -> np.ndarray:
    variables = tiny.variables(config)
    old_LN = variables['lam']['head']
    variables = {**variables, 'lam': {'head': jnp.full_like(old_LN, lam_of)}}
    return np.asarray(run(config, variables, tiny.tokens(2, T)).hidden)


@pytest.mark.parametrize(('first', 'span'), [(0, 8), (0, 1), (1, 8), (1, 1), (1, 2**30)])
def test_i_counts_from_the_first_token(first: int, span: int) -> None:
    """Positions of int32 up to the last one."""
    positions_T = np.array([0, 1, 7, 8, 15, 16, 2**30 - 1], np.int32)
    law = GivenLaw(LogFloor(span), 0.3, first)
    found = law.multipliers(2, 3, 99, jnp.asarray(positions_T))
    expected = [1 + 0.3 * math.log(1 + (i + first) // span) for i in positions_T.tolist()]
    np.testing.assert_allclose(found, np.tile(np.array(expected)[:, None], (2, 1, 3)), rtol=1e-6)


@pytest.mark.parametrize('name', lam.LAWS)
def test_the_model_is_that_of_the_coefficient_under_any_law(name: str) -> None:
    """But for the rounding of constants that the compiler folds."""
    law = lam.from_section(name, 'law', train_length=4, head_dim=tiny.MODEL.head_dim)
    given = tiny.model(layers=1, law=GivenLaw(law, 0.3))
    searched = tiny.model(layers=1, lam=law)
    np.testing.assert_allclose(hidden(given), hidden(searched, 0.3), rtol=1e-5, atol=1e-6)


def test_lambda_multiplies_it() -> None:
    """The law at p = 1.3 is the law 1.3 + 0.39 ln(1 + floor(i / S)); laws by length and position
    go together."""
    law = GivenLaw(LogFloor(4), 0.3)
    coefficients_LN = jnp.full((2, 4), 1.3)
    positions_T = jnp.arange(T)
    found = tiny.model(law=law).scale(coefficients_LN, T, positions_T)
    expected = 1.3 + 0.39 * np.log1p((np.arange(T) + 1) // 4)
    np.testing.assert_allclose(found[0, :, 0], expected, rtol=1e-6)
    both = tiny.model(law=law, lam=lam.LogLength(6)).scale(coefficients_LN, T, positions_T)
    np.testing.assert_allclose(both[0, :, 0], (1 + 1.3 * math.log(2)) * expected / 1.3, rtol=1e-6)


def test_a_staircase_leaves_its_first_span_as_it_is() -> None:
    """Bit for bit; and the next token feels it."""
    plain, later, sooner = (
        hidden(tiny.model(law=law))
        for law in (None, GivenLaw(LogFloor(T + 1), 0.1), GivenLaw(LogFloor(T), 0.1))
    )
    np.testing.assert_array_equal(plain, later)
    np.testing.assert_array_equal(plain[:, :-1], sooner[:, :-1])
    assert np.abs(plain - sooner)[:, -1].max() > 1e-4


@pytest.mark.parametrize(
    'reach',
    [{'pattern': (LayerKind(RoPE()), LayerKind(NoPE()))}, {'position': Split(RoPE())}],
    ids=['layers', 'heads'],
)
def test_it_may_reach_what_has_no_position_alone(reach: dict[str, Any]) -> None:
    config = tiny.model(law=GivenLaw(LogFloor(2), 0.5, heads='nope'), **reach)
    scale_LTN = np.asarray(config.scale(jnp.ones((2, 4)), T, jnp.arange(T)))
    grows_LN = (scale_LTN > 1).any(axis=1)
    np.testing.assert_array_equal(grows_LN, config.heads_without_position)


def test_a_model_without_one_has_the_identity_that_it_had() -> None:
    assert 'law' not in plain(tiny.MODEL)
    model = tiny.model(law=GivenLaw(LogFloor(16_384), 0.1, first=0))
    assert rebuild(plain(model), model_types()).law == model.law
    assert model.describe_position() == 'none, log-floor 0.1'


SECTION = {'kind': 'log_floor', 'coefficient': 1, 'heads': 'nope'}


def test_a_section_is_the_law_that_it_names() -> None:
    def made(section: Any) -> GivenLaw | None:
        return lam.given_from_section(section, FIELD, train_length=64, head_dim=16)

    assert made(None) is None
    assert made(SECTION) == GivenLaw(LogFloor(64), 1.0, heads='nope')
    assert made(SECTION | {'train_length': 8, 'first': 0}) == GivenLaw(
        LogFloor(8), 1.0, 0, heads='nope'
    )
    for section, message in (
        ('log_floor', r'\.coefficient is missing; GivenLaw needs it'),
        ({'kind': 'linear'}, r"\.kind is 'linear'; accepted: constant"),
        (SECTION | {'span': 8}, r'\.span is unknown for LogFloor; accepted: kind, train_length'),
        (SECTION | {'first': 2}, r'\.first is 2; accepted: 0, 1'),
        (
            SECTION | {'kind': 'scalable_softmax', 'first': 0},
            r'\.first is 0; accepted: 1; these laws have the logarithm of i',
        ),
        (SECTION | {'heads': 'some'}, r"\.heads is 'some'; accepted: all, nope"),
        (SECTION | {'coefficient': math.inf}, r'\.coefficient is inf; it must be finite'),
        (SECTION | {'coefficient': '1'}, r"\.coefficient is '1'; accepted is float"),
    ):
        with pytest.raises(ValueError, match=rf'^model\.law{message}'):
            made(section)


def test_laws_that_do_not_fit_the_model_are_refused() -> None:
    law = GivenLaw(LogFloor(8), 0.1, heads='nope')
    with pytest.raises(ValueError, match=r"^law\.heads is 'nope'; every head has a position"):
        tiny.model(position=RoPE(), law=law)
    with pytest.raises(ValueError, match=r'^law\.law\.head_dim is 9; there are heads of'):
        tiny.model(law=dataclasses.replace(law, law=lam.LAWS['info_scale'](8, 9)))
