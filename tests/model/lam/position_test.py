"""A law of lambda that follows the query's position, through the whole model."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import sharding
from nope.data import Batch
from nope.evals import lengths, positions
from nope.interop import Export, check_export
from nope.interop.fold import fold
from nope.model import LayerKind, ModelConfig, apply
from nope.model.lam import LogLength
from nope.positions import NoPE, RoPE
from nope.sharding import MeshConfig
from nope.training.step import batch_loss
from nope.variables import Variables, lam_is_neutral, lam_of, last_multipliers, with_lam
from tests import tiny
from tests.model.decoding.programs import in_pieces
from tests.model.decoding.prompt_test import LENGTH, PADDING, TOKENS, assert_alone
from tests.model.lam import by_hand
from tests.model.lam.by_keys import ByKeys
from tests.model.programs import T, run

CONFIG = tiny.model(lam=ByKeys())
MIXED = (LayerKind(RoPE()), LayerKind(NoPE()))


def expected(
    variables: Variables, tokens_T: np.ndarray, positions_T: np.ndarray | None = None
) -> by_hand.Output:
    """The model written out; positions_T: those that lambda counts from, else 0, 1, ..."""
    seen_T = np.arange(len(tokens_T)) if positions_T is None else positions_T
    coefficients_LN = np.asarray(lam_of(variables), np.float64)
    multipliers_LTN = 1 + coefficients_LN[:, None] * np.log(seen_T + 1.0)[:, None]
    return by_hand.forward(CONFIG, variables['params'], tokens_T, multipliers_LTN)


# Forward


@pytest.mark.parametrize('implementation', ['reference', None])
def test_the_forward_pass_is_the_one_written_out(implementation: str | None) -> None:
    """Hidden states and entropies; without lambda they are others."""
    config = tiny.model(lam=ByKeys(), attention=implementation)
    variables, tokens = tiny.varied_lam(CONFIG), tiny.tokens(2, T)
    output = run(config, variables, tokens)
    base = run(tiny.model(attention=implementation), tiny.variables(), tokens)
    for row in range(2):
        hidden_TD, entropy_LNT = expected(variables, tokens[row])
        np.testing.assert_allclose(output.hidden[row], hidden_TD, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(output.entropy[:, row], entropy_LNT, rtol=1e-5, atol=1e-5)
        assert np.abs(base.hidden[row] - hidden_TD).max() > 1e-2


def test_neutral_coefficients_are_the_base_model() -> None:
    """Bit for bit."""
    tokens = tiny.tokens(2, T)
    found, base = (run(config, tiny.variables(config), tokens) for config in (CONFIG, tiny.MODEL))
    tiny.assert_same(found, base)


def test_lambda_counts_from_the_positions_that_are_given() -> None:
    """Rows whose documents begin elsewhere; each token has the multipliers of its own position."""
    variables, tokens = tiny.varied_lam(CONFIG), tiny.tokens(2, T)
    positions_BT = np.stack([np.arange(T), np.arange(T) + 30]).astype(np.int32)
    output = run(CONFIG, variables, tokens, positions=positions_BT)
    for row in range(2):
        hidden_TD, _ = expected(variables, tokens[row], positions_BT[row])
        np.testing.assert_allclose(output.hidden[row], hidden_TD, rtol=1e-5, atol=1e-5)


def test_every_row_may_have_its_own_length_too() -> None:
    """A length for every row, and positions that all rows share."""
    variables, tokens = tiny.varied_lam(CONFIG), tiny.tokens(2, T)
    found = run(CONFIG, variables, tokens, length=np.array([T, 3 * T], np.float32))
    np.testing.assert_allclose(found.hidden, run(CONFIG, variables, tokens).hidden, atol=1e-6)


def test_lambda_is_one_where_it_does_not_act() -> None:
    config = tiny.model(lam=ByKeys(), pattern=MIXED, lam_layers='nope')
    found = config.multipliers(jnp.full((2, 4), 0.5), T, jnp.arange(T))
    everywhere = ByKeys().multipliers(jnp.full((2, 4), 0.5), T, jnp.arange(T))
    np.testing.assert_array_equal(found, everywhere.at[0].set(1))


def test_positions_are_asked_for() -> None:
    with pytest.raises(ValueError, match=r'ByKeys follows the position.*need positions_T'):
        CONFIG.multipliers(jnp.ones((2, 4)), T)


# Training


def test_coefficients_get_the_gradient_of_the_model_written_out() -> None:
    """By central differences in float64."""
    variables, tokens = tiny.varied_lam(CONFIG), tiny.tokens(1, T)
    direction_TD = np.random.default_rng(0).normal(size=(T, CONFIG.width))
    lam_LN = np.asarray(lam_of(variables), np.float64)

    @jax.jit
    @jax.grad
    def gradient(lam_LN: jax.Array) -> jax.Array:
        output = apply(CONFIG, with_lam(variables, lam_LN), tokens)
        return jnp.sum(output.hidden[0] * direction_TD)

    def projection(coefficients_LN: np.ndarray) -> float:
        multipliers_LTN = 1 + coefficients_LN[:, None] * np.log(np.arange(T) + 1.0)[:, None]
        output = by_hand.forward(CONFIG, variables['params'], tokens[0], multipliers_LTN)
        return float(np.sum(output.hidden * direction_TD))

    found_LN = gradient(lam_of(variables))
    for layer, head in ((0, 1), (1, 3)):
        step_LN = np.zeros_like(lam_LN)
        step_LN[layer, head] = 1e-5
        slope = (projection(lam_LN + step_LN) - projection(lam_LN - step_LN)) / 2e-5
        np.testing.assert_allclose(found_LN[layer, head], slope, rtol=1e-4)


def test_a_split_sequence_has_the_positions_of_the_whole() -> None:
    """Loss and gradients on four parts of a sequence, two of the batch."""
    config = tiny.model(lam=ByKeys(), attention=None)
    variables, batch = tiny.varied_lam(config), Batch.of_blocks(tiny.tokens(4, 33))

    def on(mesh: jax.sharding.Mesh) -> tuple:
        whole = sharding.replicated(mesh)
        arguments = jax.tree.map(lambda x: jax.device_put(np.asarray(x), whole), (variables, batch))
        with sharding.use(mesh):
            function = jax.jit(jax.value_and_grad(functools.partial(batch_loss, config)))
            return function.lower(*arguments).compile()(*arguments)

    found, alone = on(sharding.make_mesh(MeshConfig(2, 1, 1, 4))), on(tiny.mesh())
    tiny.assert_close(found, alone, rtol=1e-5, atol=1e-6)


# Decoding


@pytest.mark.parametrize(
    'config',
    [CONFIG, tiny.model(layers=3, lam=ByKeys(), pattern=MIXED, lam_layers='nope', attention=None)],
    ids=['one kind', 'mixed'],
)
def test_cached_decoding_is_the_full_forward_pass(config: ModelConfig) -> None:
    """In pieces; one row is padded on the left and counts from its first token."""
    assert_alone(config, *in_pieces(config, 4, tiny.varied_lam(config), TOKENS, PADDING, LENGTH))


# Records and folding


def test_records_have_the_multipliers_of_the_last_token() -> None:
    variables, blocks = tiny.varied_lam(CONFIG), tiny.tokens(3, T + 1)
    last_LN = 1 + np.asarray(lam_of(variables)) * np.log(T)
    measured = positions.run(CONFIG, variables, blocks, mesh=tiny.mesh(), batch_size=3)
    np.testing.assert_allclose(measured['multiplier'], last_LN, rtol=1e-6)
    entropy_LNT = np.mean([expected(variables, b[:-1]).entropy for b in blocks], axis=0)
    np.testing.assert_allclose(measured['entropy'], entropy_LNT, rtol=1e-4, atol=1e-5)
    found = lengths.run(CONFIG, [variables], blocks, (T,), tail=2, mesh=tiny.mesh(), batch_size=3)
    np.testing.assert_allclose(found['multiplier_mean'], [last_LN.mean()], rtol=1e-6)


def test_lambda_is_neutral_where_it_is_at_every_position() -> None:
    varied = tiny.varied_lam(CONFIG)
    assert lam_is_neutral(CONFIG, tiny.variables(CONFIG), T)
    assert lam_is_neutral(CONFIG, varied, 1)  # ln(1) = 0
    assert not lam_is_neutral(CONFIG, varied, 2)
    assert last_multipliers(CONFIG, varied, 2).shape == (2, 4)
    for config in (CONFIG, tiny.model(lam=LogLength(6))):
        with pytest.raises(ValueError, match='follows the'):
            lam_is_neutral(config, varied)


def test_no_factor_of_the_weights_can_stand_for_it() -> None:
    for length in (None, T):
        with pytest.raises(ValueError, match=r'ByKeys follows the position.*W_q'):
            fold(CONFIG, tiny.varied_lam(CONFIG), length)
        for way in ('fold', 'scale_param'):
            model = tiny.model(lam=ByKeys(), position=RoPE())
            with pytest.raises(ValueError, match=r'ByKeys follows the position.*W_q'):
                check_export(model, Export(way, length))
            check_export(model, Export('none', length))
