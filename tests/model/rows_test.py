"""Attention weights of chosen queries and heads, for every way a model attends."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig, apply
from nope.model.shape import ChosenRows
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


def rows_of(
    config: ModelConfig, variables: Variables, tokens: np.ndarray, heads: tuple[int, ...] | None
) -> np.ndarray:
    """[L, B, M, R, T]."""

    def found(variables: Variables, tokens: jax.Array) -> jax.Array:
        chosen = None if heads is None else jnp.asarray(heads)
        rows = apply(config, variables, tokens, rows=ChosenRows(jnp.asarray(QUERIES), chosen)).rows
        assert rows is not None
        return rows

    return np.asarray(jax.jit(found)(variables, tokens))


@pytest.mark.parametrize('config', MODELS.values(), ids=MODELS)
def test_rows_have_the_entropy_that_attention_says(config: ModelConfig) -> None:
    """Of every layer and head, with other lambdas in each; what is left of 1 is one outcome."""
    variables, tokens = tiny.varied_lam(config), tiny.tokens(2, T)
    found = rows_of(config, variables, tokens, None).astype(np.float64)
    assert found.shape == (config.layers, 2, config.heads, len(QUERIES), T)
    later_RT = np.arange(T) > np.array(QUERIES)[:, None]
    assert np.all(found[..., later_RT] == 0) and np.all(found >= 0)
    whole = np.concatenate([found, 1 - found.sum(axis=-1, keepdims=True)], axis=-1)
    entropy = -np.sum(whole * np.log(np.where(whole > 1e-6, whole, 1.0)), axis=-1)
    expected = np.asarray(run(config, variables, tokens).entropy)[..., list(QUERIES)]
    np.testing.assert_allclose(entropy, expected, rtol=1e-4, atol=2e-5)
    assert np.ptp(expected[..., 0]) > 1e-3  # heads differ


@pytest.mark.parametrize('name', ['none', 'split, window'])
def test_chosen_heads_are_those_of_all(name: str) -> None:
    config = MODELS[name]
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    every = rows_of(config, variables, tokens, None)
    np.testing.assert_array_equal(rows_of(config, variables, tokens, (3, 0)), every[:, :, [3, 0]])


def test_nothing_else_changes() -> None:
    config = MODELS['none']
    variables, tokens = tiny.variables(config), tiny.tokens(2, T)
    plain = run(config, variables, tokens, entropy=False)
    asked = apply(config, variables, tokens, rows=ChosenRows(jnp.asarray(QUERIES)))
    assert plain.rows is None
    np.testing.assert_allclose(plain.hidden, asked.hidden, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ('rows', 'message'),
    [
        (ChosenRows(jnp.asarray([3, T])), rf'rows\.queries_R has {T}; accepted: 0 to {T - 1}'),
        (ChosenRows(jnp.asarray([-1])), r'rows\.queries_R has -1; accepted: 0 to'),
        (ChosenRows(np.arange(2), np.array([0, 4])), r'rows\.heads_M has 4; accepted: 0 to 3'),
    ],
    ids=['beyond the end', 'negative', 'head'],
)
def test_rows_that_there_are_not_are_refused(rows: ChosenRows, message: str) -> None:
    config = MODELS['none']
    with pytest.raises(ValueError, match=message):
        apply(config, tiny.variables(config), tiny.tokens(2, T), rows=rows)


def test_no_array_of_all_queries_and_keys_is_made() -> None:
    """At T = 512 the largest array of the program with 'chunked' attention is far below T x T of
    every head."""
    config = tiny.model(attention='chunked')
    variables, tokens = tiny.variables(config), tiny.tokens(1, 512)
    rows = ChosenRows(jnp.asarray([100, 511]))

    def program(variables: Variables, tokens: jax.Array) -> jax.Array:
        found = apply(config, variables, tokens, rows=rows).rows
        assert found is not None
        return found

    compiled = jax.jit(program).lower(variables, tokens).compile()
    analysis = compiled.memory_analysis()
    assert analysis is not None
    assert analysis.temp_size_in_bytes < 4 * config.heads * 512 * 512
