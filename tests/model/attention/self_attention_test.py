from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask
from nope.model import ModelConfig
from nope.model.attention import SelfAttention
from nope.model.sequence import Sequence
from nope.model.shape import AskedStats
from nope.positions import NoPE, Position, RoPE
from nope.variables import Variables
from tests import tiny

B, T = 2, 7
ONES = np.ones(4, np.float32)
VARIED = np.array([0.6, 1.0, 1.3, 2.1], np.float32)
X_BTD = np.random.default_rng(1).normal(size=(B, T, 32)).astype(np.float32)


@functools.partial(jax.jit, static_argnums=0)
def attend(config: ModelConfig, params: Variables, x_BTD: Any, multipliers: Any) -> Any:
    """Self-attention's output, the heads side by side, and entropy: the output projection is the
    identity (heads * head_dim = width)."""
    identity = jnp.eye(config.width).reshape(config.heads, config.head_dim, config.width)
    found: Any = SelfAttention(config, AskedStats(entropy=True)).apply(
        {'params': {**params, 'output': identity}},
        x_BTD,
        multipliers,
        jnp.int32(0),
        Sequence(Mask(), jnp.arange(T)[None], jnp.float32(T), None),
    )
    return found[0], found[1].entropy


def weights(config: ModelConfig = tiny.MODEL) -> Variables:
    """Those of one attention layer."""
    stacked = tiny.variables(config)['params']['layers']['attention']
    return jax.tree.map(lambda leaf: leaf[0], stacked)


def entropy_of(q_BTNH: np.ndarray, k_BTKH: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """By its definition, in float64: logits have lambda / sqrt(8)."""
    k_BTNH = k_BTKH.repeat(q_BTNH.shape[2] // k_BTKH.shape[2], axis=2)
    logits_BNTS = np.einsum('BTNH,BSNH,N->BNTS', q_BTNH, k_BTNH, multipliers / 8**0.5)
    logits_BNTS[..., np.triu(np.ones((T, T), bool), 1)] = -np.inf
    weights = np.exp(logits_BNTS - logits_BNTS.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return -np.sum(weights * np.log(np.where(weights > 0, weights, 1)), axis=-1)


def projected(params: Variables) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys in float64."""
    x_BTD = X_BTD.astype(np.float64)
    return (
        np.einsum('BTD,DNH->BTNH', x_BTD, np.asarray(params['query'], np.float64)),
        np.einsum('BTD,DKH->BTKH', x_BTD, np.asarray(params['key'], np.float64)),
    )


# lambda


def test_a_softmax_scale_takes_the_place_of_one_over_the_root_of_the_head_dim() -> None:
    """Bit for bit with heads of 4, whose root no product rounds."""
    shape = {'heads': 8, 'head_dim': 4}
    multipliers = np.linspace(0.5, 2, 8, dtype=np.float32)
    plain, unscaled = tiny.model(**shape), tiny.model(**shape, softmax_scale=1.0)
    params = weights(plain)
    doubled = {**params, 'query': params['query'] * 2}
    tiny.assert_same(
        attend(unscaled, params, X_BTD, multipliers), attend(plain, doubled, X_BTD, multipliers)
    )


# Normed queries and keys


@pytest.mark.parametrize('over', ['head', 'projection'])
@pytest.mark.parametrize('position', [NoPE(), RoPE()], ids=['none', 'rope'])
def test_queries_and_keys_are_normed(position: Position, over: str) -> None:
    """Every head, or all together. Before positions: the weights of the norms are not the same in
    all dimensions."""
    config = tiny.model(qk_norm=True, qk_norm_over=over, position=position)
    params = weights(config)
    assert params['query_norm']['scale'].shape == ((8,) if over == 'head' else (4, 8))
    axes = -1 if over == 'head' else (-2, -1)

    def normed(x_BTNH: np.ndarray, name: str) -> np.ndarray:
        mean_square = np.mean(x_BTNH**2, axis=axes, keepdims=True)
        return x_BTNH / np.sqrt(mean_square + 1e-5) * np.asarray(params[name]['scale'])

    q_BTNH, k_BTKH = projected(params)
    _, entropy_BNT = attend(config, params, X_BTD, VARIED)
    q, k = position.encode(
        jnp.asarray(normed(q_BTNH, 'query_norm'), jnp.float32),
        jnp.asarray(normed(k_BTKH, 'key_norm'), jnp.float32),
        jnp.arange(T)[None],
        T,
    )
    expected = entropy_of(np.asarray(q), np.asarray(k), VARIED)
    np.testing.assert_allclose(entropy_BNT, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('position', [NoPE(), RoPE()], ids=['none', 'rope'])
def test_normed_queries_and_keys_forget_the_size_of_their_weights(position: Position) -> None:
    config = tiny.model(qk_norm=True, norm_epsilon=1e-12, position=position)
    params = weights(config)
    scaled = {**params, 'query': params['query'] * 7, 'key': params['key'] * 0.2}
    tiny.assert_close(
        attend(config, scaled, X_BTD, VARIED),
        attend(config, params, X_BTD, VARIED),
        rtol=1e-5,
        atol=1e-6,
    )


# Biases


@pytest.mark.parametrize('position', [NoPE(), RoPE()], ids=['none', 'rope'])
def test_biases_are_added_to_the_projections(position: Position) -> None:
    """Before positions. As a row of the weights does that meets a feature of constant 1."""
    x_BTD = X_BTD.copy()
    x_BTD[..., -1] = 1
    biased = tiny.model(position=position, qkv_bias=True)
    params = weights(biased)
    rows = {
        name: params[name].at[-1].add(params[f'{name}_bias']) for name in ('query', 'key', 'value')
    }
    unbiased = {name: params[name] for name in rows}
    plain = tiny.model(position=position)
    found = attend(biased, params, x_BTD, VARIED)
    tiny.assert_close(found, attend(plain, rows, x_BTD, VARIED), rtol=1e-5, atol=1e-6)
    assert np.abs(found[0] - attend(plain, unbiased, x_BTD, VARIED)[0]).max() > 1e-2


def test_a_bias_of_the_output_is_added_to_it() -> None:
    config = tiny.model(output_bias=True)
    params = weights(config)
    without = {name: leaf for name, leaf in params.items() if name != 'output_bias'}
    found, _ = attend(config, params, X_BTD, ONES)
    plain, _ = attend(tiny.MODEL, without, X_BTD, ONES)
    np.testing.assert_allclose(found, plain + params['output_bias'], rtol=1e-6, atol=1e-7)
