"""A trunk reads what it has not read, and holds what a cache filled at once holds."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pytest

from nope import sharding
from nope.evals import scoring
from nope.evals.scoring import Trunk
from nope.model import LayerKind, ModelConfig
from nope.model.cache import Cache, empty
from nope.model.decoding import unstack
from nope.model.lam import LogLength
from nope.positions import DynamicNTK, NoPE, RoPE
from tests import tiny
from tests.model.decoding.programs import piece

PIECE, LONGEST = 4, 20
TOKENS = tiny.tokens(1, LONGEST)[0]
OTHER = np.concatenate([TOKENS[:6], (TOKENS[6:] + 1) % tiny.MODEL.vocab_size])
PLAIN = tiny.model(pattern=(LayerKind(RoPE(), window=6), LayerKind(NoPE())))
FOLLOWING = tiny.model(
    position=RoPE(scaling=DynamicNTK(2.0, train_length=8)), lam=LogLength(train_length=4)
)


@pytest.fixture
def begins(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where each piece that is read begins."""
    found: list[int] = []
    fill = scoring._fill

    def noting(config: Any, weights: Any, cache: Cache, tokens: Any) -> Cache:
        found.append(int(cache.filled))
        return fill(config, weights, cache, tokens)

    monkeypatch.setattr(scoring, '_fill', noting)
    return found


@functools.cache
def weights(config: ModelConfig) -> Any:
    return unstack(config, tiny.varied_lam(config))


def grown(config: ModelConfig) -> Trunk:
    return Trunk(config, weights(config), tiny.mesh(), LONGEST + PIECE, PIECE)


def rows(of: Trunk, prefix: np.ndarray, *lengths: float) -> Cache:
    """Those of the trunk, checked: in every row is what one reading leaves."""
    with sharding.use(tiny.mesh(), sharding.GENERATION_RULES):
        cache = of.rows(prefix, np.array(lengths, np.float32))
    assert cache.filled == len(prefix) and cache.slots == LONGEST + PIECE
    np.testing.assert_array_equal(cache.length_B, lengths)
    config = of._config
    tokens = np.pad(prefix, (0, LONGEST - len(prefix)))[None]
    fresh = empty(config, np.array(lengths[:1], np.float32), LONGEST)
    expected = piece(config, weights(config), tokens, fresh).cache
    assert expected is not None
    for found, wanted in zip(*map(jax.tree.leaves, (cache.layers, expected.layers)), strict=True):
        for row in found:
            np.testing.assert_allclose(
                row[: len(prefix)], wanted[0, : len(prefix)], rtol=1e-5, atol=1e-5
            )
    return cache


def test_only_what_is_new_is_read(begins: list[int]) -> None:
    of = grown(PLAIN)
    for prefix, expected in [
        (TOKENS[:10], [0, 4, 8]),
        (TOKENS[:10], []),
        (TOKENS[:13], [10]),
        (TOKENS[:7], []),
        (TOKENS[:13], []),  # what was cut off for the one before is still there
        (OTHER[:13], [6, 10]),
        (OTHER[:8], []),
        (TOKENS[:8], [6]),
        (TOKENS, [8, 12, 16]),
        (TOKENS[:0], []),
    ]:
        begins.clear()
        if len(prefix):
            rows(of, prefix, 25.0, 41.0, 21.0)
        assert begins == expected


def test_rows_without_a_prefix_are_empty(begins: list[int]) -> None:
    """Whatever their lengths, and whatever was read before."""
    of = grown(FOLLOWING)
    rows(of, TOKENS[:5], 9.0, 9.0)
    cache = rows(of, TOKENS[:0], 9.0, 11.0)
    assert begins == [0, 4] and not any(np.any(x) for x in jax.tree.leaves(cache.layers))


def test_what_was_read_for_one_length_serves_no_other(begins: list[int]) -> None:
    """Of a model that follows the length; another one reads it once."""
    of = grown(FOLLOWING)
    for length, expected in [(9.0, [0, 4]), (9.0, []), (16.0, [0, 4]), (9.0, [0, 4])]:
        begins.clear()
        rows(of, TOKENS[:6], length, length)
        assert begins == expected
