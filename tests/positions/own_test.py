"""An encoding of one's own: the methods that it overrides decide where it can stand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from nope.model import LayerKind
from nope.positions import NoPE, Position, Split
from nope.runtime.errors import FieldError
from tests import tiny


@dataclasses.dataclass(frozen=True)
class Ramp(Position):
    """Adds the position to every embedding."""

    def embed(
        self, x_BTD: jax.Array, positions_BT: jax.Array, table: jax.Array | None
    ) -> jax.Array:
        return x_BTD + positions_BT[..., None].astype(x_BTD.dtype)

    def describe(self) -> str:
        return 'ramp'


@dataclasses.dataclass(frozen=True)
class Halved(Position):
    """Halves the queries."""

    def encode(
        self, q_BTNH: jax.Array, k_BTKH: jax.Array, positions_BT: jax.Array, length: int | jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        return q_BTNH / 2, k_BTKH

    def describe(self) -> str:
        return 'halved'


def test_what_is_added_to_the_embeddings_stands_in_no_split_and_no_pattern() -> None:
    assert Ramp().embeds and not Halved().embeds and not NoPE().embeds
    assert tiny.model(position=Ramp()).position == Ramp()
    with pytest.raises(FieldError, match=r'local.*ramp.*queries, keys or logits'):
        Split(Ramp())
    with pytest.raises(FieldError, match=r'pattern\[0\].*ramp.*layers cannot differ'):
        tiny.model(layers=2, pattern=(LayerKind(Ramp()), LayerKind(NoPE())))


def test_an_encoding_that_overrides_nothing_adds_nothing() -> None:
    x_BTNH = jnp.ones((2, 5, 4, 8))
    assert all(x is x_BTNH for x in NoPE().encode(x_BTNH, x_BTNH, jnp.arange(5)[None], 5))
    assert NoPE().embed(x_BTNH[..., 0], jnp.arange(5)[None], None).shape == (2, 5, 4)
    assert NoPE().table(32, 4) is None and NoPE().bias(4, None) is None and NoPE().longest is None


def test_what_acts_on_queries_stands_in_both() -> None:
    split = Split(Halved())
    assert tiny.model(position=split).position == split
    tiny.model(layers=2, pattern=(LayerKind(Halved()), LayerKind(NoPE())))
