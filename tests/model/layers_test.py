from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask
from nope.model import layers
from nope.positions import NoPE, Position, Rotary
from nope.state import Variables
from tests import tiny

B, T = 2, 7


def run_attention(
    params: Variables, multiples: Any, position: Position = NoPE(), kv_heads: int = 2
) -> tuple[jax.Array, jax.Array | None]:
    """Self-attention on fixed random input, its heads side by side: the output projection is
    the identity (heads * head_dim = width)."""
    config = tiny.model(position=position, kv_heads=kv_heads)
    identity = jnp.eye(config.width).reshape(config.heads, config.head_dim, config.width)
    return layers.SelfAttention(config).apply(
        {'params': {**params, 'output': identity}},
        jax.random.normal(jax.random.key(1), (B, T, config.width)),
        jnp.asarray(multiples, jnp.float32),
        Mask(),
        jnp.arange(T)[None],
        T,
        True,
    )


@pytest.fixture(scope='module')
def params() -> Variables:
    """Weights of one attention layer."""
    stacked = tiny.variables()['params']['layers']['attention']
    return jax.tree.map(lambda leaf: leaf[0], stacked)


def test_a_heads_lambda_changes_that_head_alone(params: Variables) -> None:
    base, _ = run_attention(params, [1, 1, 1, 1])
    for head in range(4):
        multiples = np.ones(4)
        multiples[head] = 1.7
        changed, _ = run_attention(params, multiples)
        difference = np.abs(changed - base).reshape(B, T, 4, 8).max(axis=(0, 1, 3))
        assert difference[head] > 1e-3
        np.testing.assert_array_equal(np.delete(difference, head), 0)


@pytest.mark.parametrize('position', [NoPE(), Rotary()], ids=['none', 'rotary'])
def test_lambda_folds_into_the_query_weights(params: Variables, position: Position) -> None:
    multiples = np.array([0.6, 1.0, 1.3, 2.1], np.float32)
    folded = {**params, 'query': params['query'] * multiples[:, None]}
    with_lam = run_attention(params, multiples, position)
    without = run_attention(folded, np.ones(4), position)
    tiny.assert_close(with_lam, without, rtol=1e-6, atol=1e-6)


def test_a_query_group_reads_its_own_key_value_head(params: Variables) -> None:
    """Grouped-query attention is full attention with every KV head repeated N / K times."""
    repeated = {name: jnp.repeat(params[name], 2, axis=1) for name in ('key', 'value')}
    grouped = run_attention(params, np.ones(4))
    full = run_attention({**params, **repeated}, np.ones(4), kv_heads=4)
    tiny.assert_close(grouped, full, rtol=1e-6, atol=1e-6)


def test_entropy_is_that_of_the_attention_weights(params: Variables) -> None:
    multiples = np.array([0.6, 1.0, 1.3, 2.1])
    _, entropy_BNT = run_attention(params, multiples)
    x_BTD = np.asarray(jax.random.normal(jax.random.key(1), (B, T, 32)), np.float64)
    q_BTNH = np.einsum('BTD,DNH->BTNH', x_BTD, np.asarray(params['query'], np.float64))
    k_BTNH = np.einsum('BTD,DKH->BTKH', x_BTD, params['key']).repeat(2, axis=2)
    logits_BNTS = np.einsum('BTNH,BSNH,N->BNTS', q_BTNH, k_BTNH, multiples / 8**0.5)
    logits_BNTS[..., np.triu(np.ones((T, T), bool), 1)] = -np.inf
    weights = np.exp(logits_BNTS - logits_BNTS.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    expected = -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)
    np.testing.assert_allclose(entropy_BNT, expected, rtol=1e-5, atol=1e-6)


def test_rms_norm_scales_to_unit_mean_square() -> None:
    x_BTD = 5 * jax.random.normal(jax.random.key(0), (B, T, 32))
    weight = jnp.linspace(0.5, 2, 32)
    normed = layers.RMSNorm(tiny.MODEL).apply({'params': {'scale': weight}}, x_BTD)
    x = np.asarray(x_BTD, np.float64)
    expected = x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(normed, expected, rtol=1e-5)


def test_swiglu_is_down_of_silu_gate_times_up() -> None:
    stacked = tiny.variables()['params']['layers']['mlp']
    weights = jax.tree.map(lambda leaf: leaf[0], stacked)
    x_BTD = jax.random.normal(jax.random.key(0), (B, T, 32))
    found = layers.SwiGLU(tiny.MODEL).apply({'params': weights}, x_BTD)
    gate, up, down = (np.asarray(weights[n], np.float64) for n in ('gate', 'up', 'down'))
    x = np.asarray(x_BTD, np.float64)
    expected = (x @ gate / (1 + np.exp(-(x @ gate))) * (x @ up)) @ down
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_initial_deviations_are_those_of_tinyllama() -> None:
    for initializer, deviation in (
        (layers.weight_initializer(tiny.TINYLLAMA), 0.0139754),
        (layers.residual_initializer(tiny.TINYLLAMA), 0.00100441),
    ):
        drawn = initializer(jax.random.key(0), (1024, 1024))
        np.testing.assert_allclose(drawn.std(), deviation, rtol=3e-3)
        np.testing.assert_allclose(drawn.mean(), 0, atol=deviation * 5e-3)
