"""Models with a range of positions: which ones their encodings take."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.model import LayerKind, ModelConfig, apply
from nope.model.lam.log_position import LogPosition
from nope.model.sequence import spread
from nope.positions import (
    Alibi,
    DynamicNTK,
    ForgetGate,
    Learned,
    NoPE,
    RoPE,
    ScaleInvariant,
    Split,
    T5Bias,
)
from tests import tiny
from tests.model.programs import T, run

RANGE = 5 * T
MIXED = tiny.model(
    pattern=(LayerKind(RoPE(), chunk=5), LayerKind(NoPE())), lam=LogPosition(train_length=4)
)
TOKENS = tiny.tokens(2, T)


def ranged(**changes: Any) -> ModelConfig:
    return tiny.model(position_range=RANGE, **changes)


def test_positions_are_spread_evenly() -> None:
    at = jnp.arange(6)[None]
    np.testing.assert_array_equal(spread(at, 6, 13)[0], [0, 2, 4, 6, 8, 10])
    np.testing.assert_array_equal(spread(at, 7, 13)[0], [0, 1, 3, 5, 7, 9])
    np.testing.assert_array_equal(spread(at, 20, 13)[0], np.arange(6))
    rows = spread(at, jnp.asarray([6.0, 3.0]), 12)
    np.testing.assert_array_equal(rows, [2 * np.arange(6), [0, 4, 8, 8, 8, 8]])


def test_a_row_is_the_same_with_padding_after_it() -> None:
    """The table has no position for the padding, which keys of no weight would make NaN."""
    config = tiny.model(position=Learned(16), position_range=16)
    tokens, variables = tiny.tokens(1, 12), tiny.varied_lam(config)
    alone = apply(config, variables, tokens[:, :10]).hidden
    padded = apply(config, variables, tokens, length=jnp.asarray([10])).hidden
    tiny.assert_close(padded[:, :10], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('n', [1, 2, 63, 64, 65, 100, 383, 511, 512])
def test_gaps_differ_by_one_at_most_and_end_below_the_range(n: int) -> None:
    at = np.asarray(spread(jnp.arange(n)[None], n, 512)[0])
    gaps = np.diff([*at, 512])
    assert at[0] == 0 and gaps.min() >= 512 // n and gaps.max() <= -(-512 // n)
    traced = jax.jit(lambda n: spread(jnp.arange(512)[None], n, 512))(n)
    np.testing.assert_array_equal(np.asarray(traced)[0, :n], at)


def test_positions_are_those_of_exact_integers() -> None:
    """Also where i range is above 2**31, and whether n is a constant of the program or not."""
    assert int(spread(jnp.asarray([[81]]), 108, 512)[0, 0]) == 384
    rng = np.random.default_rng(0)
    ranges = np.exp2(rng.uniform(0, 30, 100)).astype(int)
    lengths = np.minimum(np.exp2(rng.uniform(0, 26, 100)).astype(int), ranges)
    lengths[0], ranges[0] = 2**26, 2**30
    at = (rng.uniform(size=(100, 500)) * lengths[:, None]).astype(int)
    at[:, -1] = lengths - 1
    constant = jax.jit(spread, static_argnums=(1, 2))
    for function, cases in ((spread, 100), (jax.jit(spread), 100), (constant, 5)):
        for i, n, position_range in list(zip(at, lengths, ranges, strict=True))[:cases]:
            found = function(jnp.asarray(i, jnp.int32)[None], int(n), int(position_range))
            np.testing.assert_array_equal(found[0], i * position_range // n)


@pytest.mark.parametrize('position', [RoPE(), Learned(RANGE)], ids=lambda p: p.describe())
def test_without_positions_encodings_take_the_spread_ones(position: Any) -> None:
    config = ranged(position=position)
    plain = tiny.model(position=position)
    variables = tiny.varied_lam(plain)
    found = run(config, variables, TOKENS)
    expected = run(plain, variables, TOKENS, positions=5 * np.arange(T)[None])
    tiny.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_given_positions_are_for_the_encodings_alone() -> None:
    """Chunks and a lambda that follows the position count the tokens."""
    config = dataclasses.replace(MIXED, position_range=RANGE)
    variables = tiny.varied_lam(MIXED)
    in_order = np.arange(T, dtype=np.int32)[None]
    found = run(config, variables, TOKENS, positions=in_order)
    tiny.assert_close(found, run(MIXED, variables, TOKENS), rtol=1e-6, atol=1e-6)
    moved = run(config, variables, TOKENS, positions=in_order + 7)  # rotation is relative
    tiny.assert_close(moved, found, rtol=1e-4, atol=1e-5)
    spaced = run(config, variables, TOKENS, positions=3 * in_order)
    assert np.abs(np.asarray(spaced.hidden - found.hidden)).max() > 1e-3


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'position': NoPE()}, 'the model has no position encoding'),
        ({'position': Alibi()}, r'ALiBi does not follow .*; accepted: RoPE .* sinusoidal, lear'),
        ({'position': T5Bias(8, 12)}, 'T5 bias does not follow'),
        ({'position': ForgetGate()}, 'forget gate does not follow'),
        ({'position': ScaleInvariant()}, 'does not follow given positions alone'),
        ({'position': Split(Alibi())}, 'split ALiBi, 0.5 of heads does not follow'),
        ({'position': RoPE(scaling=DynamicNTK(2.0, 8))}, 'does not follow given positions'),
        ({'pattern': (LayerKind(RoPE()), LayerKind(Alibi()))}, 'ALiBi does not follow'),
        ({'position': Learned(RANGE - 1)}, 'learned positions end at 59'),
    ],
)
def test_encodings_without_free_positions_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=rf'^position_range is 60; .*{message}'):
        ranged(**changes)


def test_a_model_whose_positions_are_dropped_has_no_range() -> None:
    assert ranged(position=RoPE()).with_position(NoPE()) == tiny.MODEL
    assert ranged(position=Split(RoPE())).follows_length


def test_positions_that_float32_has_not_are_refused() -> None:
    assert tiny.model(position=RoPE(), position_range=2**24).position_range == 2**24
    with pytest.raises(ValueError, match=r'^position_range is 16777217; accepted: 1 to 16,777'):
        tiny.model(position=RoPE(), position_range=2**24 + 1)
