from __future__ import annotations

import functools
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import ModelConfig, layers
from nope.runtime.errors import FieldError
from nope.variables import Variables
from tests import tiny

X_BTD = np.random.default_rng(0).normal(size=(2, 7, 32)).astype(np.float32)

ACTIVATIONS = {
    'silu': lambda x: x / (1 + np.exp(-x)),
    'gelu': lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / 2**0.5)),
    'gelu_tanh': lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    'relu': lambda x: np.maximum(x, 0),
}


@functools.partial(jax.jit, static_argnums=0)
def applied(module: nn.Module, params: Variables, x_BTD: Any) -> Any:
    return module.apply({'params': params}, x_BTD)


def mlp_weights(config: ModelConfig) -> dict[str, np.ndarray]:
    """Of one layer, large enough for the activations to bend."""
    stacked = tiny.variables(config)['params']['layers']['mlp']
    return {name: 3 * np.asarray(leaf[0]) for name, leaf in stacked.items()}


# Norms


def test_rms_norm_scales_to_unit_mean_square() -> None:
    weight = np.linspace(0.5, 2, 32, dtype=np.float32)
    norm = layers.Norm(tiny.MODEL, centred=False, biased=False)
    x = 5 * X_BTD.astype(np.float64)
    expected = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(applied(norm, {'scale': weight}, 5 * X_BTD), expected, rtol=1e-5)


@pytest.mark.parametrize('biased', [False, True])
def test_layer_norm_has_mean_zero_and_variance_one(biased: bool) -> None:
    """Before its weight and bias."""
    config = tiny.model(norm='layer', norm_bias=biased)
    params = {'scale': np.linspace(0.5, 2, 32, dtype=np.float32)}
    if biased:
        params['bias'] = np.linspace(-1, 1, 32, dtype=np.float32)
    found = applied(layers.norm(config, 'any'), params, 5 * X_BTD + 3)
    x = 5 * X_BTD.astype(np.float64) + 3
    centred = x - x.mean(axis=-1, keepdims=True)
    expected = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * params['scale']
    np.testing.assert_allclose(found, expected + params.get('bias', 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('norm', ['rms', 'layer'])
def test_a_row_alone_is_normed_as_among_others(norm: str) -> None:
    """And has the gradients that two halves of it add up to."""
    module = layers.norm(tiny.model(norm=norm), 'any')
    weight = np.linspace(0.5, 2, 32, dtype=np.float32)

    def loss(weight: jax.Array, x_BTD: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(applied(module, {'scale': weight}, x_BTD)))

    row_1TD = np.concatenate([X_BTD, 3 * X_BTD]).reshape(1, 28, 32)
    alone, among = (
        jax.value_and_grad(loss, (0, 1))(weight, x) for x in (row_1TD, row_1TD.reshape(2, 14, 32))
    )
    for found, expected in zip(jax.tree.leaves(alone), jax.tree.leaves(among), strict=True):
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


def test_statistics_of_norms_are_float32() -> None:
    """In bfloat16 the square of 300 differs from its neighbours by 512."""
    config = tiny.model(norm='layer', norm_bias=True, dtype='bfloat16')
    params = {'scale': np.ones(32, np.float32), 'bias': np.zeros(32, np.float32)}
    x_BTD = jnp.asarray(X_BTD + 300, jnp.bfloat16)
    found = applied(layers.norm(config, 'any'), params, x_BTD)
    x = np.asarray(x_BTD, np.float64)
    expected = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), expected, rtol=2**-8, atol=1e-4)


# The MLP


@pytest.mark.parametrize('activation', ACTIVATIONS)
def test_a_gated_mlp_is_down_of_activated_gate_times_up(activation: str) -> None:
    config = tiny.model(activation=activation)
    weights = mlp_weights(config)
    gate, up, down = (weights[n].astype(np.float64) for n in ('gate', 'up', 'down'))
    expected = (ACTIVATIONS[activation](X_BTD @ gate) * (X_BTD @ up)) @ down
    found = applied(layers.MLP(config), weights, X_BTD)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize('activation', ACTIVATIONS)
def test_a_plain_mlp_is_down_of_activated_up(activation: str) -> None:
    config = tiny.model(mlp='plain', activation=activation)
    weights = mlp_weights(config)
    assert set(weights) == {'up', 'down'}
    up, down = (weights[n].astype(np.float64) for n in ('up', 'down'))
    expected = ACTIVATIONS[activation](X_BTD @ up) @ down
    found = applied(layers.MLP(config), weights, X_BTD)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('mlp', ['gated', 'plain'])
def test_biases_are_added_to_the_projections(mlp: str) -> None:
    """As a row of the weights does that meets a feature of constant 1."""
    x_BTD = X_BTD.copy()
    x_BTD[..., -1] = 1
    biased, plain = tiny.model(mlp=mlp, mlp_bias=True), tiny.model(mlp=mlp)
    weights = mlp_weights(biased)
    rows = {name: leaf.copy() for name, leaf in weights.items() if not name.endswith('bias')}
    for name in rows.keys() - {'down'}:
        rows[name][-1] += weights[f'{name}_bias']
    found = applied(layers.MLP(biased), weights, x_BTD)
    expected = applied(layers.MLP(plain), rows, x_BTD) + weights['down_bias']
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def test_a_model_without_norms_has_none_of_their_weights() -> None:
    params = tiny.variables(tiny.model(norm='none'))['params']
    names = {entry.key for path, _ in jax.tree_util.tree_leaves_with_path(params) for entry in path}
    assert not {name for name in names if 'norm' in name}
    assert layers.norm(tiny.model(norm='none'), 'any')(X_BTD) is X_BTD


@pytest.mark.parametrize('changes', [
    {'norm_bias': True}, {'embedding_norm': True}, {'block': 'post'}, {'block': 'both'},
])  # fmt: skip
def test_parts_of_norms_that_are_not_there_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FieldError, match=next(iter(changes))):
        tiny.model(norm='none', **changes)
