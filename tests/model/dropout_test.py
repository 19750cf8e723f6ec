"""Dropout of the model: its places, and that nothing but training has it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention.dropout import dropped
from nope.model import ModelConfig, apply
from nope.model.dropout import Place, head_keys, layer_keys, place_keys, row_keys
from nope.positions import NoPE, Position, RoPE, Split
from nope.training.config import check_whole_sequences
from nope.variables import abstract_variables
from tests import tiny
from tests.model.context_test import mesh_of

B, T = 3, 6
DROPPING = tiny.model(width=24, mlp_width=40, dropout=0.1, attention_dropout=0.2)
D, F, N = DROPPING.width, DROPPING.mlp_width, DROPPING.heads
Q = -(-T // 4)  # counters along the first axis of a mask: each draws four numbers


def keys(step: int = 0) -> jax.Array:
    return row_keys(np.uint32(7), jnp.int32(step), jnp.arange(B))


def traced(config: ModelConfig, keys_B: jax.Array | None, **how: Any) -> Any:
    tokens = jnp.asarray(tiny.tokens(B, T))
    variables = abstract_variables(config, tiny.mesh())
    return jax.make_jaxpr(lambda v: apply(config, v, tokens, keys_B=keys_B, **how))(variables)


def drawn(jaxpr: Any) -> Counter[tuple[int, ...]]:
    """How many masks are drawn by the shape of their counters, those of a row's layers once."""
    found: Counter[tuple[int, ...]] = Counter()
    for equation in jaxpr.eqns:
        if equation.primitive.name == 'threefry2x32':
            found[equation.outvars[0].aval.shape] += 1
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, 'eqns')):
            if hasattr(value, 'eqns'):  # of a loop, or of what is computed again
                found += drawn(value)
    return found


@pytest.mark.parametrize('remat', ['none', 'full'])
def test_it_drops_in_the_five_places_of_t5(remat: str) -> None:
    """Embeddings, attention weights, what attention adds, activations, what the MLP adds, and the
    final states: two of width D outside of the layers, two inside."""
    found = drawn(traced(dataclasses.replace(DROPPING, remat=remat), keys()).jaxpr)
    assert found == {(B, Q, D): 4, (B, Q, F): 1, (B * N, Q, T): 1}
    alone = drawn(traced(dataclasses.replace(DROPPING, attention_dropout=0.0), keys()).jaxpr)
    assert alone == {(B, Q, D): 4, (B, Q, F): 1}
    weights = drawn(traced(dataclasses.replace(DROPPING, dropout=0.0), keys()).jaxpr)
    assert weights == {(B * N, Q, T): 1}


def test_without_keys_or_without_a_rate_the_program_is_the_one_without_dropout() -> None:
    plain = dataclasses.replace(DROPPING, dropout=0.0, attention_dropout=0.0)
    programs = [
        str(traced(config, keys_B, entropy=True))
        for config, keys_B in ((plain, None), (plain, keys()), (DROPPING, None))
    ]
    assert programs[0] == programs[1] == programs[2]
    assert 'random' not in programs[0] and 'threefry' not in programs[0]


def test_keys_differ_by_step_row_layer_place_and_head() -> None:
    rows = [*keys(0), *keys(1)]
    layers = [key for row in (keys(0),) for layer in layer_keys(row, 3) for key in layer]
    places = [key for place in Place for key in place_keys(keys(0), place)]
    heads = list(head_keys(layer_keys(keys(0), 3)[1], N).ravel())
    everything = [*rows, *layers, *places, *heads]
    data = {tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in everything}
    assert len(data) == len(everything) == 2 * B + 3 * B + 6 * B + B * N


def test_split_heads_have_masks_of_their_own() -> None:
    """As many as there are heads, whichever call of attention they are in."""
    config = dataclasses.replace(DROPPING, dropout=0.0, position=Split(RoPE(), window=4))
    assert drawn(traced(config, keys()).jaxpr) == {(B * N // 2, Q, T): 2}
    variables = tiny.variables(config)
    tokens = jnp.asarray(tiny.tokens(B, T))
    found = [apply(config, variables, tokens, keys_B=keys(step)).hidden for step in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(np.asarray(found[0]) - np.asarray(found[2])).max() > 1e-3


@pytest.mark.parametrize('position', [NoPE(), Split(RoPE(), window=4)], ids=str)
def test_shape_and_rows_are_of_the_weights_that_nothing_drops(position: Position) -> None:
    config = dataclasses.replace(DROPPING, layers=1, dropout=0.0, position=position)
    variables, tokens = tiny.variables(config), jnp.asarray(tiny.tokens(B, T))
    how: dict[str, Any] = {'span': 2, 'queries_R': jnp.arange(T)}
    dropped, whole = (apply(config, variables, tokens, keys_B=x, **how) for x in (keys(), None))
    assert np.abs(np.asarray(dropped.hidden) - np.asarray(whole.hidden)).max() > 1e-3
    tiny.assert_close(
        (dropped.rows, dropped.shape[:2]), (whole.rows, whole.shape[:2]), rtol=1e-5, atol=1e-6
    )


def test_a_mesh_that_splits_sequences_has_no_dropout_of_weights() -> None:
    message = r'^compute\.mesh\.context is 2; accepted: 1 where model\.attention_dropout is 0\.2'
    with pytest.raises(ValueError, match=message):
        check_whole_sequences(DROPPING, mesh_of(2, 2, 1, 2), 'compute.mesh', dropout=True)
    check_whole_sequences(DROPPING, mesh_of(2, 2, 1, 2), 'compute.mesh')  # where nothing drops
    alone = dataclasses.replace(DROPPING, attention_dropout=0.0)
    check_whole_sequences(alone, mesh_of(2, 2, 1, 2), 'compute.mesh', dropout=True)


def test_masks_are_the_same_however_jax_draws_numbers_of_its_own() -> None:
    found = []
    for partitionable in (True, False):
        with jax.threefry_partitionable(partitionable):
            ones, of_place = jnp.ones((B, T, D)), place_keys(keys(), Place.MLP)
            found.append(np.asarray(dropped(0.5, ones, of_place)))
    np.testing.assert_array_equal(*found)
