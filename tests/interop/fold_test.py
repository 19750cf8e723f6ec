"""Lambda folded into the query weights is the same model."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from nope.interop import fold
from nope.model import LayerKind, ModelConfig, apply
from nope.model.lam import LogLength
from nope.positions import Alibi, NoPE, RoPE, T5Bias, Yarn
from nope.variables import Variables, lam_is_neutral, lam_of, with_lam
from tests import tiny

MIXED = (LayerKind(RoPE(), window=5), LayerKind(NoPE()))


def output(config: ModelConfig, variables: Variables, length: int = 12) -> np.ndarray:
    tokens = tiny.tokens(2, length)
    traced = jax.jit(lambda v, t: apply(config, v, t).hidden).trace(variables, tokens)
    return np.asarray(traced.lower().compile()(variables, tokens))


@pytest.mark.parametrize(
    'config',
    [
        tiny.model(),
        tiny.model(position=RoPE(scaling=Yarn(4.0, 8)), qkv_bias=True),
        tiny.model(position=Alibi(), softmax_scale=0.3),
        tiny.model(position=T5Bias(buckets=8, max_distance=16)),
        tiny.model(pattern=MIXED),
        tiny.model(pattern=MIXED, lam_layers='nope'),
        pytest.param(
            tiny.model(pattern=MIXED, lam_layers='nope', temperature='adaptive'), id='temperature'
        ),
        tiny.model(position=RoPE(), qk_norm=True, qk_norm_over='projection', block='post'),
        tiny.model(
            pattern=(LayerKind(RoPE()), LayerKind(NoPE(), qk_norm=False)),
            qk_norm=True,
            qk_norm_over='projection',
            norm_offset=True,
            qkv_bias=True,
        ),
        tiny.model(pattern=(LayerKind(RoPE()), LayerKind(head_dim=12, kv_heads=1)), qkv_bias=True),
    ],
    ids=lambda c: f'{c.describe_position()}-{c.lam_layers}-{c.qk_norm_over}',
)
def test_folding_is_exact_for_every_encoding(config: ModelConfig) -> None:
    variables = tiny.varied_lam(config)
    plain, folded = fold(config, variables)
    assert lam_is_neutral(plain, folded) and not lam_is_neutral(config, variables)
    found, expected = output(plain, folded), output(config, variables)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    unscaled = with_lam(variables, lam_of(folded))
    assert np.abs(output(plain, unscaled) - expected).max() > 1e-2


def test_a_lambda_that_follows_the_length_is_folded_for_one_length() -> None:
    config = tiny.model(lam=LogLength(6))
    coefficients = np.full((config.attention_layers, config.heads), 0.7, np.float32)
    variables = with_lam(tiny.variables(config), jax.numpy.asarray(coefficients))
    plain, folded = fold(config, variables, 12)
    np.testing.assert_allclose(output(plain, folded), output(config, variables), rtol=0, atol=2e-5)
    assert np.abs(output(plain, folded, 9) - output(config, variables, 9)).max() > 1e-3
    same, untouched = fold(config, variables, 6)  # the training length
    np.testing.assert_array_equal(
        untouched['params']['layers']['attention']['query'],
        variables['params']['layers']['attention']['query'],
    )
    assert lam_is_neutral(same, untouched)


def test_a_length_is_asked_for() -> None:
    config = tiny.model(lam=LogLength(6))
    with pytest.raises(ValueError, match=r'LogLength follows the length.*one length'):
        fold(config, tiny.variables(config))


def test_qk_norm_would_divide_the_factor_out() -> None:
    config = tiny.model(qk_norm=True)
    with pytest.raises(ValueError, match=r'QK-norm.*scale_param'):
        fold(config, tiny.varied_lam(config))


def test_qk_norm_of_layers_where_lambda_does_not_act_is_no_obstacle() -> None:
    kinds = (LayerKind(RoPE()), LayerKind(NoPE(), qk_norm=False))
    config = tiny.model(pattern=kinds, qk_norm=True, lam_layers='nope')
    variables = tiny.varied_lam(config)
    plain, folded = fold(config, variables)
    np.testing.assert_allclose(output(plain, folded), output(config, variables), rtol=0, atol=2e-5)
    with pytest.raises(ValueError, match='QK-norm'):
        fold(dataclasses.replace(config, lam_layers='all'), variables)


def test_nothing_else_is_touched() -> None:
    config = tiny.model(qkv_bias=True)
    variables = tiny.varied_lam(config)
    _, folded = fold(config, variables)
    assert jax.tree.structure(folded['params']) == jax.tree.structure(variables['params'])
    before = dict(jax.tree_util.tree_leaves_with_path(variables['params']))
    for path, leaf in jax.tree_util.tree_leaves_with_path(folded['params']):
        if not path[-1].key.startswith('query'):
            np.testing.assert_array_equal(leaf, before[path])
