"""The order of the Hopper kernels' programs: how long its last ones keep the others waiting."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Sequence

import jax.numpy as jnp
import pytest

from nope.attention.blocks import visible_blocks
from nope.attention.flash import Rules

parts = pytest.importorskip('nope.attention.mosaic_gpu.parts')

from nope.attention.mosaic_gpu import key_gradients  # noqa: E402

MULTIPROCESSORS = 132
RULES = Rules(causal=True, window=None, offset=0, entropy=True)


def shape_of(batch: int, length: int, kv_heads: int = 4, head_dim: int = 128, step: int = 128):
    return parts.HopperShape(
        step=step,
        rules=RULES,
        interpret=False,
        batch=batch,
        queries=length,
        keys=length,
        real_keys=length,
        heads=32,
        kv_heads=kv_heads,
        head_dim=head_dim,
        dtype=jnp.dtype('bfloat16'),
        segmented=False,
    )


def steps_of_queries(shape, tile: int) -> int:
    """Of a program, by its index in the grid: the last tiles first."""
    first = shape.queries - (tile + 1) * parts.TILE
    last = first + parts.TILE - 1
    return visible_blocks(first, last, None, 0, shape.keys, shape.step).end


def steps_of_keys(shape, tile: int) -> int:
    first = tile * parts.TILE
    seen = visible_blocks(first, first + parts.TILE - 1, 0, None, shape.queries, shape.step)
    return shape.group * (seen.end - seen.begin)


def in_order(shape, steps, heads: int, grid: dict[str, int]) -> list[int]:
    """Steps of every program, in the order of the grid."""
    tiles = [steps(shape, i) for i in range(grid['tile'])]
    assert sorted(grid.values()) == sorted([shape.batch, heads, len(tiles)])
    at = list(grid).index('tile')
    return [tiles[index[at]] for index in itertools.product(*map(range, grid.values()))]


def idle(steps: Sequence[int]) -> float:
    """Share of time that the multiprocessors wait at the end, each taking the next program when it
    has done one, of the least time that these programs take."""
    free = [0] * MULTIPROCESSORS
    for n in steps:
        heapq.heapreplace(free, free[0] + n)
    least = max(sum(steps) / MULTIPROCESSORS, max(steps))
    return max(free) / least - 1


CASES = [(1, 2048), (4, 2048), (1, 8192), (4, 8192), (1, 16384), (1, 65536)]


@pytest.mark.parametrize(('batch', 'length'), CASES)
def test_multiprocessors_wait_for_the_last_programs_at_most_4_percent(batch, length):
    queries = shape_of(batch, length)
    keys = shape_of(batch, length, step=64)
    by_query = parts.grid(queries, queries.heads, length // parts.TILE)
    by_key = parts.grid(keys, keys.kv_heads, length // parts.TILE)

    assert idle(in_order(queries, steps_of_queries, queries.heads, by_query)) < 0.04
    assert idle(in_order(keys, steps_of_keys, keys.kv_heads, by_key)) < 0.04


def test_another_order_would_let_them_wait_for_a_quarter_of_the_time_and_more():
    shape = shape_of(1, 2048)
    heads_first = {'head': 32, 'tile': 16, 'batch': 1}
    assert idle(in_order(shape, steps_of_queries, 32, heads_first)) > 0.25

    shape = shape_of(1, 8192, step=64)
    heads_first = {'head': 4, 'tile': 64, 'batch': 1}
    assert idle(in_order(shape, steps_of_keys, 4, heads_first)) > 0.4


def test_tiles_of_a_head_follow_each_other_where_all_keys_do_not_fit_the_cache():
    fits, more = shape_of(1, 16384), shape_of(1, 16384 + 128)
    assert list(parts.grid(fits, 32, 128)) == ['tile', 'head', 'batch']
    assert list(parts.grid(more, 32, 129)) == ['head', 'tile', 'batch']
    assert next(iter(parts.grid(shape_of(1, 32768, head_dim=64), 32, 256))) == 'tile'
    assert next(iter(parts.grid(shape_of(1, 8192, kv_heads=32), 32, 64))) == 'head'


@pytest.mark.parametrize(('batch', 'length'), [(1, 1024), (1, 2048), (1, 4096), (2, 2048)])
def test_few_programs_for_the_gradients_of_keys_share_groups_until_none_waits(batch, length):
    shape = shape_of(batch, length, step=64)
    share, tiles = key_gradients.sharing(shape), length // parts.TILE
    assert shape.group % share == 0
    programs = in_order(
        dataclasses.replace(shape, heads=shape.heads // share),
        steps_of_keys,
        shape.kv_heads * share,
        parts.grid(shape, shape.kv_heads * share, tiles),
    )
    assert share > 1
    assert idle(programs) < 0.1


def test_enough_programs_share_no_group():
    assert key_gradients.sharing(shape_of(4, 2048)) == 1
    assert key_gradients.sharing(shape_of(1, 8192)) == 1
    assert key_gradients.sharing(shape_of(1, 128, kv_heads=32)) == 1
