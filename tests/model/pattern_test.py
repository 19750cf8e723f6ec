"""Layers of several kinds in one model: their encodings, how far they see, where lambda acts."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope import losses
from nope.attention import Mask
from nope.model import LayerKind, ModelConfig, ModelOutput, apply
from nope.model.blocks import Block
from nope.model.layers import Norm
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats
from nope.positions import Alibi, NoPE, Position, RoPE, T5Bias
from nope.variables import Variables, lam_of, with_lam
from tests import tiny
from tests.model.programs import T, influence, loss_and_gradients, run

ALTERNATING = (LayerKind(RoPE(), window=4), LayerKind(NoPE()))
THREE = (LayerKind(T5Bias(8, 12)), LayerKind(Alibi(), window=5), LayerKind(RoPE(dims=4)))


def composed(config: ModelConfig, variables: Variables, tokens: jax.Array) -> ModelOutput:
    """The model written out: layer i is a block of a model that knows its kind alone."""
    params = variables['params']
    sequence = Sequence(
        Mask(),
        jnp.arange(tokens.shape[1])[None],
        jnp.float32(tokens.shape[1]),
        params.get('position'),
    )
    x_BTD: Any = jnp.take(params['embedding'], tokens, axis=0)
    entropies: list[Any] = []
    for layer in range(config.layers):
        kind = config.pattern[layer % len(config.pattern)]
        normed = config.qk_norm and kind.qk_norm is not False
        alone = tiny.model(position=kind.position, window=kind.window, qk_norm=normed)
        block = Block(alone, AskedStats(entropy=True))
        weights = jax.tree.map(lambda leaf, layer=layer: leaf[layer], params['layers'])
        x_BTD, (stats, _) = block.apply(
            {'params': weights}, x_BTD, lam_of(variables)[layer], jnp.int32(0), sequence
        )
        entropies.append(stats.entropy)
    norm = Norm(config, centred=False, biased=False)
    hidden_BTD: Any = norm.apply({'params': params['final_norm']}, x_BTD)
    return ModelOutput(hidden_BTD, params['head'], jnp.stack(entropies))


@functools.partial(jax.jit, static_argnums=(0, 1))
def with_gradients(model: Any, config: ModelConfig, variables: Variables, blocks: Any) -> tuple:
    """The model's output, and the gradients of its loss and entropy in all its variables."""

    def objective(variables: Variables) -> tuple[jax.Array, ModelOutput]:
        output = model(config, variables, blocks[:, :-1])
        loss = losses.mean_loss(losses.token_loss(output.hidden, output.head, blocks[:, 1:]))
        return loss + jnp.mean(output.entropy), output

    return jax.value_and_grad(objective, has_aux=True)(variables)


def modelled(config: ModelConfig, variables: Variables, tokens: jax.Array) -> ModelOutput:
    return apply(config, variables, tokens, entropy=True)


@functools.cache
def expected(pattern: tuple[LayerKind, ...]) -> tuple:
    config = tiny.model(layers=3, pattern=pattern)
    return with_gradients(composed, config, tiny.varied_lam(config), tiny.tokens(2, T + 1))


@pytest.mark.parametrize(
    ('pattern', 'remat', 'unroll'),
    [
        (ALTERNATING, 'none', None),
        pytest.param(ALTERNATING, 'full', 1, marks=pytest.mark.slow),
        pytest.param(ALTERNATING, 'none', 1, marks=pytest.mark.slow),
        pytest.param(ALTERNATING, 'dots', None, marks=pytest.mark.slow),
        (THREE, 'none', 1),
    ],
    ids=lambda value: (
        'alternating' if value == ALTERNATING else 'three' if value == THREE else None
    ),
)
def test_every_layer_is_of_its_own_kind(
    pattern: tuple[LayerKind, ...], remat: str, unroll: int | None
) -> None:
    """Values and gradients, of the table and of lambda too, and entropies."""
    config = tiny.model(layers=3, pattern=pattern, remat=remat, unroll=unroll)
    found = with_gradients(modelled, config, tiny.varied_lam(config), tiny.tokens(2, T + 1))
    tiny.assert_close(found, expected(pattern), rtol=1e-5, atol=1e-6)


def test_a_pattern_of_one_kind_is_the_model_without_a_pattern() -> None:
    """Bit for bit, and the gradients are the same operations."""
    kind = LayerKind(RoPE(), window=4)
    patterned = tiny.model(pattern=(kind,))
    plain = tiny.model(position=kind.position, window=kind.window)
    variables, blocks = tiny.varied_lam(), tiny.tokens(2, T + 1)
    tiny.assert_same(*(run(c, variables, blocks[:, :-1]) for c in (patterned, plain)))
    operations = [
        str(loss_and_gradients.trace(c, variables, blocks).jaxpr) for c in (patterned, plain)
    ]
    assert operations[0] == operations[1]


def test_a_pattern_repeats() -> None:
    a, b = ALTERNATING
    config = tiny.model(layers=5, pattern=(b, a, b))
    assert config.kinds == (b, a)
    np.testing.assert_array_equal(config.kind_indices, [0, 1, 0, 0, 1])
    assert config.without_position == (True, False, True, True, False)
    assert config.describe_position() == 'none + RoPE, window 4'
    assert tiny.model(pattern=(a,)).describe_position() == 'RoPE, window 4'


def test_another_encoding_takes_the_place_of_those_there_are() -> None:
    """NoPE layers stay so, unless there are no others."""
    rope, nope = ALTERNATING
    changed = tiny.model(pattern=ALTERNATING).with_position(Alibi())
    assert changed == tiny.model(pattern=(LayerKind(Alibi(), window=4), nope))
    assert tiny.model(position=RoPE()).with_position(Alibi()) == tiny.model(position=Alibi())
    assert tiny.MODEL.with_position(Alibi()) == tiny.model(position=Alibi())
    windows = (LayerKind(window=4), LayerKind())
    everywhere = tiny.model(pattern=windows).with_position(RoPE())
    assert everywhere == tiny.model(pattern=(rope, LayerKind(RoPE())))


# QK-norm


@pytest.mark.parametrize('unroll', [1, None])
def test_layers_without_qk_norm_are_those_of_a_model_without_it(unroll: int | None) -> None:
    """Values and gradients; the weights of the norms that such a layer has get none."""
    pattern = (LayerKind(RoPE()), LayerKind(NoPE(), qk_norm=False))
    config = tiny.model(layers=3, pattern=pattern, qk_norm=True, unroll=unroll)
    variables, blocks = tiny.varied_lam(config), tiny.tokens(2, T + 1)
    found = with_gradients(modelled, config, variables, blocks)
    tiny.assert_close(
        found, with_gradients(composed, config, variables, blocks), rtol=1e-5, atol=1e-6
    )
    attention = found[1]['params']['layers']['attention']
    for name in ('query_norm', 'key_norm'):
        np.testing.assert_array_equal(attention[name]['scale'][1], 0)
        assert np.all(np.abs(attention[name]['scale'][::2]).max(axis=-1) > 1e-6)
    np.testing.assert_array_equal(config.layers_with_qk_norm, [True, False, True])
    assert config.describe_position() == 'RoPE + none, no QK-norm'


def test_a_kind_that_says_of_qk_norm_what_the_model_says_is_the_same_kind() -> None:
    for said in (True, False):
        config = tiny.model(pattern=(LayerKind(qk_norm=said), LayerKind()), qk_norm=said)
        assert config.kinds == (LayerKind(),)


# Windows


@pytest.mark.parametrize(
    'position', [NoPE(), RoPE(), Alibi(), T5Bias(8, 12)], ids=lambda p: p.describe()
)
def test_a_layer_sees_its_window_alone(position: Position) -> None:
    """Itself and the three tokens before it."""
    change_ST, _ = influence(tiny.model(layers=1, position=position, window=4))
    s, t = np.meshgrid(np.arange(T), np.arange(T), indexing='ij')
    visible_ST = (t - s >= 0) & (t - s < 4)
    np.testing.assert_array_equal(change_ST[~visible_ST], 0)
    assert np.all(change_ST[visible_ST] > 1e-4)


# Where lambda acts


def test_lambda_of_layers_with_positions_is_inert() -> None:
    """Whatever its coefficients: the loss and all gradients bit for bit, its own exactly 0. That of
    the other layers acts."""
    config = tiny.model(pattern=ALTERNATING, lam_layers='nope')
    variables, blocks = tiny.variables(), tiny.tokens(2, T + 1)
    ones, varied = np.ones(4, np.float32), np.array([0.5, 1.3, 1.7, 2.0], np.float32)

    def outputs(rope: np.ndarray, nope: np.ndarray) -> tuple:
        return loss_and_gradients(config, with_lam(variables, jnp.stack([rope, nope])), blocks)

    tiny.assert_same(outputs(3 * varied, varied), outputs(ones, varied))
    _, gradients = outputs(varied, varied)
    np.testing.assert_array_equal(lam_of(gradients)[0], 0)
    assert np.all(np.abs(lam_of(gradients)[1]) > 1e-6)
    assert abs(outputs(ones, varied)[0] - outputs(ones, ones)[0]) > 1e-4


def test_multipliers_are_one_where_lambda_does_not_act() -> None:
    lam_LN = jnp.asarray(np.random.default_rng(0).uniform(0.5, 2, (2, 4)), jnp.float32)
    config = tiny.model(pattern=ALTERNATING, lam_layers='nope')
    np.testing.assert_array_equal(config.multipliers(lam_LN, T), lam_LN.at[0].set(1))
    everywhere = dataclasses.replace(config, lam_layers='all')
    np.testing.assert_array_equal(everywhere.multipliers(lam_LN, T), lam_LN)
    without = tiny.model(lam_layers='nope')
    np.testing.assert_array_equal(without.multipliers(lam_LN, T), lam_LN)
