"""Softmax temperatures that follow each query."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from nope.model import LayerKind, ModelConfig, counts
from nope.model.lam import entropy_multipliers
from nope.positions import NoPE, RoPE, Split
from nope.variables import Variables
from tests import tiny
from tests.model.programs import T, loss_and_gradients, run

N = tiny.MODEL.heads
TOKENS = tiny.tokens(2, T)
ADAPTIVE = tiny.model(layers=1, temperature='adaptive')


def logits_of(
    config: ModelConfig, positions_T: np.ndarray, variables: Variables | None = None
) -> np.ndarray:
    """Logits [B, N, T, S] of the one layer under the adaptive temperature, in float64 and without
    the mask, from the formula."""
    variables = tiny.varied_lam(config) if variables is None else variables
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), variables['params'])
    layer = jax.tree.map(lambda leaf: leaf[0], params['layers'])
    x_BTD = params['embedding'][TOKENS]
    mean_square = np.mean(x_BTD**2, axis=-1, keepdims=True)
    x_BTD = x_BTD / np.sqrt(mean_square + config.norm_epsilon) * layer['attention_norm']['scale']
    weights = layer['attention']
    q_BTNH = np.einsum('BTD,DNH->BTNH', x_BTD, weights['query'])
    k_BTNH = np.einsum('BTD,DKH->BTKH', x_BTD, weights['key']).repeat(2, axis=2)
    own = weights['temperature']
    beta_BTN = np.log1p(np.exp(x_BTD @ own['beta'] + own['beta_bias']))
    gamma_BTN = 2 * np.tanh(x_BTD @ own['gamma'] + own['gamma_bias'])
    keys_T1 = (positions_T + 1.0)[:, None]
    p_BTN = 1 + beta_BTN * np.log(keys_T1 + 1) ** gamma_BTN
    p_BTN *= np.asarray(variables['lam']['head'][0])
    q_BTNH *= p_BTN[..., None] / np.sqrt(config.head_dim)
    return np.einsum('BTNH,BSNH->BNTS', q_BTNH, k_BTNH)


def entropies_of(logits_BNTS: np.ndarray, seen_TS: np.ndarray) -> np.ndarray:
    logits_BNTS = np.where(seen_TS, logits_BNTS, -np.inf)
    unnormalised = np.exp(logits_BNTS - logits_BNTS.max(-1, keepdims=True))
    weights = unnormalised / unnormalised.sum(-1, keepdims=True)
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)


def test_adaptive_temperature_is_the_formula_times_lambda() -> None:
    """In every entropy of the layer; positions count from each document's first token."""
    causal_TS = np.tril(np.ones((T, T), bool))
    expected = entropies_of(logits_of(ADAPTIVE, np.arange(T)), causal_TS)
    found = run(ADAPTIVE, tiny.varied_lam(ADAPTIVE), TOKENS).entropy
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4, atol=1e-5)

    ids_T = np.where(np.arange(T) < 5, 1, 2)
    positions_T = np.where(np.arange(T) < 5, np.arange(T), np.arange(T) - 5)
    expected = entropies_of(logits_of(ADAPTIVE, positions_T), causal_TS & (ids_T[:, None] == ids_T))
    rows = (np.stack([ids] * 2) for ids in (ids_T, positions_T))
    packed = run(ADAPTIVE, tiny.varied_lam(ADAPTIVE), TOKENS, *rows).entropy
    assert packed is not None
    np.testing.assert_allclose(packed[0], expected, rtol=1e-4, atol=1e-5)


def with_temperature(variables: dict, **changes: jax.Array) -> dict:
    """Parameters of the adaptive temperature replaced."""
    params = variables['params']
    attention = params['layers']['attention']
    temperature = {**attention['temperature'], **changes}
    layers = {**params['layers'], 'attention': {**attention, 'temperature': temperature}}
    return {**variables, 'params': {**params, 'layers': layers}}


def without_temperature(variables: dict) -> dict:
    params = variables['params']
    attention = {k: v for k, v in params['layers']['attention'].items() if k != 'temperature'}
    layers = {**params['layers'], 'attention': attention}
    return {**variables, 'params': {**params, 'layers': layers}}


def test_a_beta_of_zero_leaves_the_base_model() -> None:
    variables = tiny.variables(ADAPTIVE)
    closed = with_temperature(variables, beta_bias=jnp.full((1, N), -1e3))
    found = run(ADAPTIVE, closed, TOKENS)
    plain = run(tiny.model(layers=1), without_temperature(variables), TOKENS)
    tiny.assert_close(found, plain, rtol=1e-6, atol=1e-7)


def test_it_acts_where_lambda_does() -> None:
    """With `lam_layers='nope'` on heads without position alone: others keep their entropies, and
    nothing teaches their weights."""
    half = tiny.model(layers=1, position=Split(RoPE()), lam_layers='nope', temperature='adaptive')
    variables = tiny.variables(half)
    with_position = ~half.heads_without_position[0]
    assert 0 < with_position.sum() < N
    found = run(half, variables, TOKENS).entropy
    plain_model = dataclasses.replace(half, temperature='none')
    plain = run(plain_model, without_temperature(variables), TOKENS).entropy
    assert found is not None and plain is not None
    np.testing.assert_array_equal(found[0][:, with_position], plain[0][:, with_position])
    assert np.all(found[0][:, ~with_position, 2:] != plain[0][:, ~with_position, 2:])
    _, gradients = loss_and_gradients(half, variables, tiny.tokens(2, T + 1))
    for leaf in gradients['params']['layers']['attention']['temperature'].values():
        np.testing.assert_array_equal(leaf[..., with_position], 0)


def test_its_weights_and_biases_learn_in_every_layer_and_kind() -> None:
    kinds = LayerKind(RoPE()), LayerKind(NoPE())
    config = tiny.model(temperature='adaptive', pattern=kinds)
    _, gradients = loss_and_gradients(config, tiny.variables(config), tiny.tokens(2, T + 1))
    temperature = gradients['params']['layers']['attention']['temperature']
    assert set(temperature) == {'beta', 'beta_bias', 'gamma', 'gamma_bias'}
    for name, leaf in temperature.items():
        assert leaf.shape[0] == config.layers and leaf.shape[-1] == N
        assert bool(jnp.all(jnp.any(leaf != 0, axis=1) if leaf.ndim == 3 else leaf != 0)), name


def test_it_is_computed_in_float32_in_a_model_of_bfloat16() -> None:
    """Where the power of ln(i + 1) is large, three digits of it would move the entropy."""
    half = dataclasses.replace(ADAPTIVE, dtype='bfloat16')
    operations = str(
        jax.make_jaxpr(lambda v: run.__wrapped__(half, v, TOKENS).hidden)(tiny.variables(half))
    )
    assert 'bf16' in operations
    for name in ('pow', 'tanh', 'log'):
        lines = [line for line in operations.splitlines() if f'= {name} ' in line]
        assert lines and all('f32' in line.split('=')[0] for line in lines), name


# Entropies of four nats take more keys than the tests of a model have.
ENTROPIES = np.array([0.0, 0.5, 0.50001, 0.84, 0.85, 1.5, 3.0, 4.16, 5.9, 6.0, 9.0], np.float32)


def test_multipliers_by_entropy_are_the_polynomial_from_its_highest_power_on() -> None:
    e = ENTROPIES.astype(np.float64)
    fitted = -0.037 * e**4 + 0.481 * e**3 - 2.3 * e**2 + 4.917 * e - 1.791
    expected = np.where(e > 0.5, np.maximum(fitted, 1), 1)
    found = entropy_multipliers(jnp.asarray(ENTROPIES)[None, None])
    assert found.shape == (1, len(e), 1)
    np.testing.assert_allclose(found[0, :, 0], expected, rtol=1e-4)
    assert expected[7] > 2.4 and expected[5] > 1.8
    assert expected[3] == expected[9] == expected[10] == 1 < expected[4]


def test_the_entropy_of_each_query_decides_its_temperature() -> None:
    """The one that it has under lambda, sinks included; logits of keys alone are multiplied."""
    variables = tiny.varied_lam(ADAPTIVE)
    plain = with_temperature(variables, beta_bias=jnp.full((1, N), -1e3))
    logits_BNTS = 12 * logits_of(ADAPTIVE, np.arange(T), plain)
    sinks_N = np.array([0.3, -1.0, 2.0, 0.0])
    column_BNT1 = np.broadcast_to(sinks_N[:, None, None], (*logits_BNTS.shape[:3], 1))
    seen_TS = np.tril(np.ones((T, T + 1), bool))
    seen_TS[:, -1] = True
    first_BNT = entropies_of(np.concatenate([logits_BNTS, column_BNT1], -1), seen_TS)
    factors_BTN = np.asarray(entropy_multipliers(jnp.asarray(first_BNT, jnp.float32)))
    assert factors_BTN.max() > 2 and (factors_BTN == 1).any()
    logits_BNTS *= factors_BTN.swapaxes(1, 2)[..., None]
    expected = entropies_of(np.concatenate([logits_BNTS, column_BNT1], -1), seen_TS)

    attention = without_temperature(variables)['params']['layers']['attention']
    changed = {**attention, 'query': 12 * attention['query'], 'sinks': jnp.asarray(sinks_N)[None]}
    params = variables['params']
    layers = {**params['layers'], 'attention': changed}
    config = tiny.model(layers=1, temperature='entropy', sinks=True)
    found = run(config, {**variables, 'params': {**params, 'layers': layers}}, TOKENS).entropy
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4)


def test_the_temperature_by_entropy_acts_where_lambda_does_and_has_no_parameters() -> None:
    kinds = LayerKind(RoPE()), LayerKind(NoPE())
    plain = tiny.model(pattern=kinds, lam_layers='nope')
    variables = tiny.variables(plain)
    found, base = (
        run(dataclasses.replace(plain, temperature=t), variables, TOKENS).entropy
        for t in ('entropy', 'none')
    )
    assert found is not None and base is not None
    np.testing.assert_array_equal(found[0], base[0])
    assert np.all(found[1][..., 4:] < base[1][..., 4:])


def test_its_second_attention_is_counted() -> None:
    twice, once = tiny.model(temperature='entropy'), tiny.MODEL
    attention = counts.training_flops(once, 200) - counts.training_flops(once, 100)
    extra = counts.training_flops(twice, 100) - counts.training_flops(once, 100)
    assert extra == attention and counts.parameters(twice) == counts.parameters(once)


def test_flops_of_its_two_projections_are_counted() -> None:
    config, plain = tiny.model(temperature='adaptive'), tiny.MODEL
    extra = counts.training_flops(config, 100) - counts.training_flops(plain, 100)
    assert extra == 6 * config.layers * 2 * config.width * N
