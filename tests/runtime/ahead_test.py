"""Items are made one ahead, in their order, and no further."""

from __future__ import annotations

import threading

import pytest

from nope.runtime.ahead import one_ahead


@pytest.mark.parametrize('count', [0, 1, 2, 5])
def test_every_item_is_made_once_and_in_order(count: int) -> None:
    made: list[int] = []

    def make(item: int) -> int:
        made.append(item)
        return 10 * item

    assert list(one_ahead(make, range(count))) == [(i, 10 * i) for i in range(count)]
    assert made == [*range(count)]


def test_the_next_is_made_while_one_is_used_and_no_other() -> None:
    begun, first = [threading.Event() for _ in range(3)], threading.get_ident()
    threads = set()

    def make(item: int) -> int:
        threads.add(threading.get_ident())
        begun[item].set()
        return item

    found = one_ahead(make, range(3))
    assert next(found) == (0, 0)
    assert begun[1].wait(10) and not begun[2].is_set()
    found.close()
    assert not begun[2].is_set() and first not in threads


def test_an_error_is_raised_at_its_item() -> None:
    def make(item: int) -> float:
        return 1 / (2 - item)

    found = one_ahead(make, range(4))
    assert [next(found), next(found)] == [(0, 0.5), (1, 1.0)]
    with pytest.raises(ZeroDivisionError):
        next(found)
