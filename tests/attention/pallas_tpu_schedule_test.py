"""A schedule visits every pair of blocks in sight once, and writes every output block once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nope.attention import Mask
from nope.attention.blocks import BlockPlan
from nope.attention.pallas_tpu.schedule import CUT, FIRST, IDLE, LAST, by_key, by_query


@st.composite
def plans(draw) -> tuple[BlockPlan, int]:
    causal = draw(st.booleans())
    queries, keys = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    window = draw(st.none() | st.integers(1, 90))
    blocks = st.sampled_from([4, 8, 16])
    # Queries before the first key, among the keys, and after the last.
    offset = draw(st.integers(-80, 80))
    return BlockPlan(causal, window, False, True, queries, keys, draw(blocks), draw(blocks)), offset


def seen_blocks(plan: BlockPlan, offset: int) -> tuple[np.ndarray, np.ndarray]:
    """Which pairs of blocks have a visible pair, and which have nothing else. bool [C, D]."""
    Q, K = plan.q_block, plan.k_block
    mask = Mask(plan.causal, window=plan.window, offset=offset)
    shape = plan.q_blocks * Q, plan.k_blocks * K
    dense = np.broadcast_to(np.asarray(mask.as_array(1, *shape))[0], shape)
    real_S = np.arange(shape[1]) < plan.keys
    cut = (dense & real_S).reshape(plan.q_blocks, Q, plan.k_blocks, K)
    return cut.any((1, 3)), cut.all((1, 3))


def check(plan: BlockPlan, offset: int, tables, *, outer: int) -> None:
    """outer: 0 where output blocks are query blocks, 1 where they are key blocks."""
    pairs = np.stack([np.asarray(x) for x in tables[:2]], axis=1)
    flags = np.asarray(tables[2])
    some, whole = seen_blocks(plan, offset)
    at_work = flags & IDLE == 0
    visited = {tuple(pair) for pair in pairs[at_work].tolist()}
    assert len(visited) == at_work.sum()
    assert {tuple(pair) for pair in np.argwhere(some).tolist()} <= visited
    for (i, j), flag in zip(pairs[at_work].tolist(), flags[at_work], strict=True):
        assert flag & CUT or whole[i, j]
    # Every output block's steps follow each other, begin with FIRST and end with LAST.
    real = flags & (FIRST | LAST) != 0
    assert sorted(pairs[flags & FIRST != 0, outer]) == list(range(some.shape[outer]))
    assert sorted(pairs[flags & LAST != 0, outer]) == list(range(some.shape[outer]))
    used = pairs[: np.flatnonzero(real)[-1] + 1, outer]
    assert np.all(np.diff(used) >= 0)
    edges = np.flatnonzero(np.diff(used))
    assert np.all(flags[edges] & LAST) and np.all(flags[edges + 1] & FIRST)
    assert np.all(flags[len(used) :] & IDLE)


@settings(max_examples=100, deadline=None)
@given(plans())
def test_known_offsets(given_plan: tuple[BlockPlan, int]) -> None:
    plan, offset = given_plan
    check(plan, offset, by_query(plan, offset), outer=0)
    check(plan, offset, by_key(plan, offset), outer=1)


@settings(max_examples=10, deadline=None)
@given(plans())
def test_traced_offsets(given_plan: tuple[BlockPlan, int]) -> None:
    """The same pairs at the offset's value, in tables that are large enough for any."""
    plan, offset = given_plan
    for outer, make in enumerate((by_query, by_key)):
        tables = jax.jit(lambda offset, make=make: make(plan, offset))(jnp.int32(offset))
        check(plan, offset, tables, outer=outer)
        exact = make(plan, offset)
        for traced, static in zip(tables, exact, strict=True):
            np.testing.assert_array_equal(traced[: len(static)], static)


@pytest.mark.parametrize('blocks', [1, 2, 8])
def test_causal_visits_half(blocks: int) -> None:
    plan = BlockPlan(True, None, True, True, 16 * blocks, 16 * blocks, 16, 16)
    for make in (by_query, by_key):
        tables = make(plan, 0)
        assert len(tables.q_P) == blocks * (blocks + 1) // 2
        assert np.sum(tables.flags_P & CUT != 0) == blocks
        assert not np.any(tables.flags_P & IDLE)
