"""Pairs: what two work folders have of the same name, beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

SIDES = ('A', 'B')


class Item(Protocol):
    """Something that a section shows of one work folder. names: by any of which that of another
    folder is known, the first one is its title. compared: what differs where they differ."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def compared(self) -> Any: ...


T = TypeVar('T', bound=Item)


class Pair(NamedTuple, Generic[T]):
    """cells: one a folder, None where it has none. note: how they compare; '' of one folder."""

    title: str
    cells: tuple[T | None, ...]
    note: str

    @property
    def sides(self) -> list[tuple[str, T]]:
        """The cells that there are, each with the letter of its folder ('' of one folder)."""
        letters = SIDES if len(self.cells) > 1 else ('',)
        return [(s, c) for s, c in zip(letters, self.cells, strict=True) if c is not None]

    @property
    def shown(self) -> list[tuple[str, T]]:
        """As `sides`, what is the same once, with both letters."""
        return [('A, B', self.sides[0][1])] if self.note == 'same' else self.sides

    @property
    def marked(self) -> bool:
        return self.note not in ('', 'same')


def paired(sides: Sequence[Sequence[T]]) -> list[Pair[T]]:
    """Items of one folder, or of two by name, in the order of the first one."""
    if len(sides) == 1:
        return [Pair(item.names[0], (item,), '') for item in sides[0]]
    first, second = sides
    by_name = {name: i for i, item in reversed([*enumerate(second)]) for name in item.names}
    taken: set[int] = set()
    found: list[Pair[T]] = []
    for item in first:
        places = [by_name[name] for name in item.names if name in by_name]
        place = next((p for p in places if p not in taken), None)
        other = None if place is None else second[place]
        taken |= set() if place is None else {place}
        found.append(Pair(item.names[0], (item, other), _note(item, other)))
    alone = [item for i, item in enumerate(second) if i not in taken]
    return [*found, *(Pair(item.names[0], (None, item), 'only in B') for item in alone)]


def _note(a: Item, b: Item | None) -> str:
    if b is None:
        return 'only in A'
    return 'same' if a.compared == b.compared else 'differs'
