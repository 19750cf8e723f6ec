from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
import pytest

from nope import sharding
from nope.model import ModelConfig, Transformer
from nope.model.init import initializer
from nope.positions import NoPE, T5Bias
from nope.variables import Variables
from tests import tiny

WITH_BIASES = dataclasses.replace(
    tiny.EVERY_OPTION,
    width=256,
    mlp_width=96,
    layers=4,
    vocab_size=256,
    position=NoPE(),
    tied_head=False,
)


@functools.cache
def fresh(config: ModelConfig) -> Variables:
    key = jax.random.key(0, impl='rbg')  # its programs are compiled fastest
    init = jax.jit(Transformer(config).init)
    return sharding.unbox(init(key, np.zeros((1, 2), np.int32)))['params']


def assert_deviates(leaf: jax.Array, deviation: float) -> None:
    np.testing.assert_allclose(leaf.std(), deviation, rtol=0.02)
    np.testing.assert_allclose(leaf.mean(), 0, atol=0.03 * deviation)


@pytest.mark.parametrize(
    ('role', 'deviation'),
    [
        *((role, 0.0139754) for role in ('embedding', 'head', 'query', 'key', 'value', 'mlp_in')),
        *((role, 0.00100441) for role in ('output', 'mlp_out')),
    ],
)
def test_deviations_are_those_of_tinyllama(role: str, deviation: float) -> None:
    drawn = initializer(tiny.TINYLLAMA, role)(jax.random.key(0), (1024, 1024))
    np.testing.assert_allclose(drawn.std(), deviation, rtol=3e-3)
    np.testing.assert_allclose(drawn.mean(), 0, atol=deviation * 5e-3)


@pytest.mark.parametrize(('role', 'times'), [('query', 2), ('key', 2), ('value', 1), ('output', 1)])
def test_sharp_queries_and_keys_deviate_twice_as_much(role: str, times: float) -> None:
    sharp = dataclasses.replace(tiny.TINYLLAMA, init='sharp')
    drawn, plain = (
        initializer(c, role)(jax.random.key(0), (8, 8)) for c in (sharp, tiny.TINYLLAMA)
    )
    np.testing.assert_allclose(drawn, times * plain, rtol=1e-6)


def test_weights_start_with_the_papers_deviations() -> None:
    params = fresh(WITH_BIASES)
    layers = params['layers']
    weights = [params['embedding'], params['head'], layers['mlp']['gate'], layers['mlp']['up']]
    weights += [layers['attention'][name] for name in ('query', 'key', 'value')]
    for leaf in weights:
        assert_deviates(leaf, (2 / (5 * 256)) ** 0.5)
    for leaf in (layers['attention']['output'], layers['mlp']['down']):
        assert_deviates(leaf, 1 / (16 * 4))
    assert not np.allclose(layers['mlp']['up'][0], layers['mlp']['up'][1])


def test_the_t5_decoder_starts_as_its_authors_do() -> None:
    """arXiv 2305.19466: by their inputs, queries also by what logits are not divided by."""
    D, H, N, F = 128, 32, 4, 256
    params = fresh(
        tiny.t5_decoder(
            layers=2,
            width=D,
            heads=N,
            kv_heads=N,
            head_dim=H,
            mlp_width=F,
            vocab_size=512,
            position=T5Bias(buckets=4096, max_distance=10_000),
        )
    )
    attention, mlp = params['layers']['attention'], params['layers']['mlp']
    assert_deviates(params['embedding'], 1.0)
    assert_deviates(attention['query'], (D * H) ** -0.5)
    assert_deviates(attention['key'], D**-0.5)
    assert_deviates(attention['value'], D**-0.5)
    assert_deviates(attention['output'], (N * H) ** -0.5)
    assert_deviates(mlp['up'], D**-0.5)
    assert_deviates(mlp['down'], F**-0.5)
    assert_deviates(params['position'], D**-0.5)
    assert set(params) == {'embedding', 'final_norm', 'layers', 'position'}


def test_inputs_of_tokens_start_by_their_own_width() -> None:
    P = 64
    params = fresh(tiny.t5_decoder(layers=2, width=128, token_width=P))
    for layer in params['layers'].values():
        assert_deviates(layer['token_input']['output'], P**-0.5)


def test_biases_start_at_zero_and_norms_at_one() -> None:
    params = fresh(WITH_BIASES)
    found = {'scale': 0, 'bias': 0}
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = path[-1].key
        for kind, value in (('scale', 1), ('bias', 0)):
            if name.endswith(kind):
                np.testing.assert_array_equal(leaf, value)
                found[kind] += 1
    # Norms: of the embeddings, two of a layer, of queries and keys, the last. All but those of
    # queries and keys have biases, and seven projections.
    assert found == {'scale': 6, 'bias': 4 + 7}
