"""One item ahead: the next is made in a thread while the last is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar('Item')
Made = TypeVar('Made')


def one_ahead(make: Callable[[Item], Made], items: Sequence[Item]) -> Iterator[tuple[Item, Made]]:
    """(item, make(item)) of every item in order. Two are held at most: the one that is used and the
    one that is made. An error of `make` is raised at its item; the thread ends with the iterator.
    """
    with ThreadPoolExecutor(1) as maker:
        made = maker.submit(make, items[0]) if items else None
        for number, item in enumerate(items, 1):
            assert made is not None
            result = made.result()
            made = maker.submit(make, items[number]) if number < len(items) else None
            yield item, result
            del result
