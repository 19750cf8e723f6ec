"""Attention weights of chosen queries, for every way a model attends."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig, apply
from nope.positions import Alibi, ForgetGate, Learned, NoPE, RoPE, ScaleInvariant, Split, T5Bias
from nope.variables import Variables
from tests import tiny
from tests.model.programs import T, run

MODELS = {
    'none': tiny.model(),
    'T5': tiny.model(position=T5Bias(buckets=8, max_distance=12)),
    'learned': tiny.model(position=Learned(T)),
    'factors': tiny.model(position=ScaleInvariant(tau=2.0)),
    'a kind a layer': tiny.model(pattern=(LayerKind(RoPE(), window=6), LayerKind(Alibi()))),
    'chunks': tiny.model(pattern=(LayerKind(RoPE(), chunk=5), LayerKind(NoPE()))),
    'split, window': tiny.model(position=Split(RoPE(), window=3)),
    'forget gates': tiny.model(position=ForgetGate()),
    'sinks': tiny.model(sinks=True),
    'entmax': tiny.model(weights='entmax', attention=None),
    'stick-breaking': tiny.model(weights='stick_breaking', attention=None),
    'temperature by entropy': tiny.model(temperature='entropy'),
    'chunked': tiny.model(attention='chunked'),
}
QUERIES = (7, 0, T - 1)


@pytest.mark.parametrize('config', MODELS.values(), ids=MODELS)
def test_rows_have_the_entropy_that_attention_says(config: ModelConfig) -> None:
    """Of every layer and head, with other lambdas in each; what is left of 1 is one outcome."""
    variables, tokens = tiny.varied_lam(config), tiny.tokens(2, T)
    program = jax.jit(functools.partial(apply, config, queries_R=jnp.asarray(QUERIES)))
    found = np.asarray(program(variables, tokens).rows, np.float64)
    assert found.shape == (config.layers, 2, config.heads, len(QUERIES), T)
    later_RT = np.arange(T) > np.array(QUERIES)[:, None]
    assert np.all(found[..., later_RT] == 0) and np.all(found >= 0)
    whole = np.concatenate([found, 1 - found.sum(axis=-1, keepdims=True)], axis=-1)
    entropy = -np.sum(whole * np.log(np.where(whole > 1e-6, whole, 1.0)), axis=-1)
    expected = np.asarray(run(config, variables, tokens).entropy)[..., list(QUERIES)]
    np.testing.assert_allclose(entropy, expected, rtol=1e-4, atol=2e-5)
    assert np.ptp(expected[..., 0]) > 1e-3  # heads differ


def test_nothing_else_changes() -> None:
    config = MODELS['none']
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    plain = run(config, variables, tokens, entropy=False)
    asked = apply(config, variables, tokens, queries_R=jnp.asarray(QUERIES))
    assert plain.rows is None
    np.testing.assert_allclose(plain.hidden, asked.hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(('query', 'accepted'), [(T, f'0 to {T - 1}'), (-1, '0 to')])
def test_queries_that_there_are_not_are_refused(query: int, accepted: str) -> None:
    config = MODELS['none']
    with pytest.raises(ValueError, match=f'queries_R has {query}; accepted: {accepted}'):
        apply(config, tiny.variables(config), tiny.tokens(2, T), queries_R=jnp.asarray([3, query]))


def test_no_array_of_all_queries_and_keys_is_made() -> None:
    """At T = 512 the largest array of the program with 'chunked' attention is far below T x T of
    every head."""
    config = tiny.model(attention='chunked')
    variables, tokens = tiny.variables(config), tiny.tokens(1, 512)
    queries_R = jnp.asarray([100, 511])

    def program(variables: Variables, tokens: jax.Array) -> jax.Array:
        found = apply(config, variables, tokens, queries_R=queries_R).rows
        assert found is not None
        return found

    compiled = jax.jit(program).lower(variables, tokens).compile()
    analysis = compiled.memory_analysis()
    assert analysis is not None
    assert analysis.temp_size_in_bytes < 4 * config.heads * 512 * 512
