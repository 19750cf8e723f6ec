"""Block ranges hold all that is seen and call whole what is, by the dense mask."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nope.attention import Mask
from nope.attention.blocks import BlockPlan, BlockRange, sweep, visible_blocks

OFFSETS = [-90, 0, 7, 40, 90]  # of queries before the first key, among the keys, after the last
WINDOWS = [None, 1, 9, 50]


def assert_holds(found: BlockRange, rows: np.ndarray, block: int) -> None:
    """rows: bool [rows, columns], what a block of rows sees."""
    begin, whole_begin, whole_end, end = (int(x) for x in found[:4])
    blocks = -(-rows.shape[1] // block)
    assert 0 <= begin <= whole_begin <= whole_end <= end <= blocks
    for j in range(blocks):
        seen = rows[:, j * block : (j + 1) * block]
        if seen.any():
            assert begin <= j < end
        if whole_begin <= j < whole_end:
            assert seen.all() and seen.shape[1] == block


@pytest.mark.parametrize('offset', OFFSETS)
@pytest.mark.parametrize('window', WINDOWS)
@pytest.mark.parametrize('causal', [True, False])
def test_blocks_of_keys_and_of_queries(causal: bool, window: int | None, offset: int) -> None:
    queries, keys, side, other = 37, 61, 16, 8
    mask = Mask(causal, window=window, offset=offset)
    dense_TS = np.asarray(mask.as_array(1, queries, keys))[0]
    behind = None if window is None else window - 1
    ahead = 0 if causal else behind
    for dense, first, reach in (
        (dense_TS, offset, (behind, ahead)),
        (dense_TS.T, -offset, (ahead, behind)),
    ):
        for start in range(0, dense.shape[0], side):
            begin = first + start
            ends = begin, begin + side - 1
            found = visible_blocks(*ends, *reach, dense.shape[1], other)
            assert_holds(found, dense[start : start + side], other)
            assert found.cut[0] or found.begin == found.whole_begin
            assert found.cut[1] or found.whole_end == found.end


@pytest.mark.parametrize('offset', OFFSETS)
@pytest.mark.parametrize('reach', [(None, None), (None, 0), (0, None), (9, 0), (9, 9), (70, 70)])
def test_traced_indices_give_what_integers_give(
    reach: tuple[int | None, int | None], offset: int
) -> None:
    def found(first, xp):
        blocks = visible_blocks(first, first + 15, *reach, 61, 8)
        return xp.stack([xp.asarray(x, xp.int32) for x in blocks[:4]])

    traced = jax.jit(lambda first: found(first, jnp))(jnp.int32(offset))
    np.testing.assert_array_equal(traced, found(offset, np))


def test_nothing_in_sight_is_no_block() -> None:
    for first in (-100, 100):
        found = visible_blocks(first, first + 15, 9, 9, 61, 8)
        assert found.begin == found.whole_begin == found.whole_end == found.end


@pytest.mark.parametrize('offset', [None, *OFFSETS])
@pytest.mark.parametrize('window', WINDOWS)
@pytest.mark.parametrize('causal', [True, False])
def test_a_plan_has_a_last_block_to_begin_with(
    causal: bool, window: int | None, offset: int | None
) -> None:
    queries, keys, block = 37, 37 if offset is None else 61, 8
    plan = BlockPlan(causal, window, offset is None, False, queries, keys, block, block)
    dense = np.asarray(Mask(causal, window=window, offset=offset).as_array(1, queries, keys))[0]
    pairs = 0
    for i in range(plan.q_blocks):
        found = plan.visible_keys(i, offset or 0)
        assert_holds(found, dense[i * block : (i + 1) * block], block)
        assert found.whole_end < found.end
        assert found.cut[0] or found.begin == found.whole_begin
        assert found.cut[1] or found.whole_end == found.end - 1
        pairs += found.end - found.begin
    assert pairs <= plan.most_pairs <= plan.q_blocks * plan.k_blocks


def test_half_of_all_pairs_are_in_sight_of_an_aligned_causal_plan() -> None:
    plan = BlockPlan(True, None, True, False, 80, 80, 8, 8)
    pairs = sum(found.end - found.begin for found in (plan.visible_keys(i, 0) for i in range(10)))
    assert pairs == plan.most_pairs == 55


@pytest.mark.parametrize('cut_all', [False, True])
def test_a_sweep_visits_in_order_and_says_which_are_cut(cut_all: bool) -> None:
    blocks = BlockRange(1, 3, 4, 6, (True, True))

    def step(j, state, *, cut):
        visited, count = state
        return visited.at[count].set(10 * j + int(cut)), count + 1

    start = jnp.zeros(6, jnp.int32), 0
    visited, count = sweep(blocks, step, start, cut_all=cut_all)
    assert count == 5
    assert visited.tolist() == [11, 21, 31 if cut_all else 30, 41, 51, 0]
