"""A method's cache keeps results, and not the object."""

from __future__ import annotations

import gc
import weakref

import pytest

from nope.data.mixture import CHUNK, SourceDraws
from nope.runtime.caching import cached_method


class Squares:
    def __init__(self) -> None:
        self.asked: list[int] = []
        self.of = cached_method(self._square, 2)

    def _square(self, x: int) -> int:
        self.asked.append(x)
        return x * x


def test_the_latest_results_are_kept() -> None:
    squares = Squares()
    assert [squares.of(x) for x in (2, 3, 2, 4, 3)] == [4, 9, 4, 16, 9]
    assert squares.asked == [2, 3, 4, 3]


@pytest.fixture
def no_collection():
    """Objects go when the last reference to them does, or not at all."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_an_object_goes_with_its_last_reference(no_collection: None) -> None:
    squares, draws = Squares(), SourceDraws(0, (1.0, 2.0))
    assert squares.of(5) == 25 and draws[CHUNK][1] >= 0
    gone = weakref.ref(squares), weakref.ref(draws)
    del squares, draws
    assert [reference() for reference in gone] == [None, None]
